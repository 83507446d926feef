//go:build unix

package embedded

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// account is the user that the server's processes belong to.
type account struct {
	name       string
	uid        uint32
	gid        uint32
	groups     []uint32
	credential *syscall.Credential // nil: the same as this process
}

// serverAccount returns the account for the server: ourselves, or if we are
// root (which PostgreSQL refuses) an unprivileged user. A cluster that exists
// in dataDir keeps its owner.
func serverAccount(dataDir string) (*account, error) {
	if os.Geteuid() != 0 {
		return &account{name: "uid " + strconv.Itoa(os.Geteuid()), uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}, nil
	}
	if info, err := os.Stat(filepath.Join(dataDir, "PG_VERSION")); dataDir != "" && err == nil {
		if uid := ownerOf(info); uid != 0 {
			u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
			if err != nil {
				return nil, fmt.Errorf("%w: the owner of %s is unknown: %v", ErrDataDir, dataDir, err)
			}
			return accountOf(u)
		}
	}
	for _, name := range []string{"postgres", "_postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return accountOf(u)
		}
	}
	return nil, errors.New("embedded: root cannot run PostgreSQL, and there is no user postgres or nobody: create one or run as another user")
}

func accountOf(u *user.User) (*account, error) {
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, fmt.Errorf("embedded: user %s: %w", u.Username, err)
	}
	a := &account{name: u.Username, uid: uint32(uid), gid: uint32(gid), groups: []uint32{uint32(gid)}}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("embedded: groups of user %s: %w", u.Username, err)
	}
	for _, id := range ids {
		if group, err := strconv.ParseUint(id, 10, 32); err == nil {
			a.groups = append(a.groups, uint32(group))
		}
	}
	a.credential = &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: a.groups}
	return a, nil
}

// own gives a file or directory of ours to the account.
func (a *account) own(path string) error {
	if a.credential == nil {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// barrier returns the first directory on the way to path that the account may
// not enter, or "". It looks at what exists of the way.
func (a *account) barrier(path string) string {
	if a.credential == nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	var way []string
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		way = append(way, dir)
		if dir == filepath.Dir(dir) {
			break
		}
	}
	for _, dir := range slices.Backward(way) {
		if info, err := os.Stat(dir); err == nil && !a.mayEnter(info) {
			return dir
		}
	}
	return ""
}

func (a *account) mayEnter(info os.FileInfo) bool {
	mode := info.Mode().Perm()
	switch stat := info.Sys().(*syscall.Stat_t); {
	case stat.Uid == a.uid:
		return mode&0o100 != 0
	case slices.Contains(a.groups, stat.Gid):
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

func ownerOf(info os.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }

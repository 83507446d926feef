package idemclient

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// FileStore is a Store of one small file per intent in a directory on a local
// disk, readable by its owner only. A key that it has returned survives the
// process being killed and, where the disk keeps what it was told to, the machine
// losing power. Safe for concurrent use, also by several processes on one
// directory.
type FileStore struct {
	dir string
}

const (
	// keySuffix ends the name of an intent's file; the rest is the name's
	// SHA-256, since a name may hold what a file's name may not.
	keySuffix = ".key"

	// newPrefix begins the name of a file that is not an intent's yet.
	newPrefix = ".new-"

	// abandonedAfter is when a file that did not become an intent's is certainly
	// a killed process's: making one takes milliseconds.
	abandonedAfter = time.Hour

	// maxKeyFile is more than a file with the longest name and key, escaped, has.
	maxKeyFile = 8 << 10
)

// keyFile is a file's content. The intent is there for the reader, and to prove
// that the file is the intent's.
type keyFile struct {
	Intent string `json:"intent"`
	Key    string `json:"key"`
}

// OpenFileStore returns the store in dir, which is made if it is missing; its
// parent must exist. What killed processes left half made is deleted.
func OpenFileStore(dir string) (*FileStore, error) {
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = syncDir(filepath.Dir(dir))
	} else if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("idemclient: open the file store: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("idemclient: open the file store: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), newPrefix) && time.Since(info.ModTime()) > abandonedAfter {
			_ = os.Remove(filepath.Join(dir, e.Name())) // the next one to open the store tries again
		}
	}
	return &FileStore{dir: dir}, nil
}

// Keep returns the key that is kept for intent, which is key if there is none
// yet, once it is on the disk. A file that cannot be read or is not this intent's
// is an error, never a reason for another key. It asks ctx only at its start.
func (s *FileStore) Keep(ctx context.Context, intent, key string) (string, error) {
	if err := errors.Join(ctx.Err(), validIntent(intent), validKey(key)); err != nil {
		return "", fmt.Errorf("idemclient: keep: %w", err)
	}
	kept, err := s.read(intent)
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.write(intent, key); err == nil {
			kept, err = s.read(intent)
		}
	}
	if err == nil {
		// Whoever made the entry may not have got as far as this.
		err = syncDir(s.dir)
	}
	if err != nil {
		return "", fmt.Errorf("idemclient: keep: %w", err)
	}
	return kept, nil
}

// Forget deletes the file of intent, if there is one. It asks ctx only at its
// start.
func (s *FileStore) Forget(ctx context.Context, intent string) error {
	err := ctx.Err()
	if err == nil {
		err = os.Remove(s.path(intent))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		err = syncDir(s.dir)
	}
	if err != nil {
		return fmt.Errorf("idemclient: forget: %w", err)
	}
	return nil
}

func (s *FileStore) path(intent string) string {
	sum := sha256.Sum256([]byte(intent))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:])+keySuffix)
}

func (s *FileStore) read(intent string) (string, error) {
	f, err := os.Open(s.path(intent))
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return "", err
	}
	var k keyFile
	if err := json.Unmarshal(content, &k); err != nil || k.Intent != intent || validKey(k.Key) != nil {
		return "", fmt.Errorf("%s is not the file of its intent; find out what became of the intent before deleting it", f.Name())
	}
	return k.Key, nil
}

// write makes the file of intent, unless there is one by now. The name appears
// with the whole content behind it: a hard link is made only where no file is.
func (s *FileStore) write(intent, key string) error {
	f, err := os.CreateTemp(s.dir, newPrefix)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	content, err := json.Marshal(keyFile{Intent: intent, Key: key})
	if err == nil {
		_, err = f.Write(append(content, '\n'))
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	err = os.Link(f.Name(), s.path(intent))
	if errors.Is(err, fs.ErrExist) {
		return nil // another one was first, and its key is the intent's
	}
	return err
}

// syncDir makes the entries of dir last. Windows writes them through and cannot
// sync a directory.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

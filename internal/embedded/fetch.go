//go:build unix

package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// archiveLimit is the size in bytes that no archive reaches.
const archiveLimit = 200 << 20

// fetchTimeout is how long a download may take.
const fetchTimeout = 10 * time.Minute

// fetch returns the binaries of a release from the cache, or downloads,
// verifies and unpacks them first. Nothing of an archive is unpacked or run
// before its checksum is ours.
func fetch(ctx context.Context, cfg Config, r release, who *account) (binaries, error) {
	platform := thisPlatform()
	sum, err := r.sum(platform)
	if err != nil {
		return binaries{}, err
	}
	cache, err := cacheDir(cfg.CacheDir, who)
	if err != nil {
		return binaries{}, err
	}
	// The sum is in the name, so another archive never passes for this one.
	home := filepath.Join(cache, fmt.Sprintf("postgresql-%s-%s-%s", r.version, platform, sum[:16]))
	if _, err := os.Stat(home); errors.Is(err, os.ErrNotExist) {
		url := repository(cfg.RepositoryURL) + "/" + r.archivePath(platform)
		if err := install(ctx, cfg.Log, url, sum, home); err != nil {
			return binaries{}, err
		}
	}
	return examineDir(ctx, filepath.Join(home, "bin"), who)
}

func repository(url string) string {
	if url == "" {
		url = defaultRepository()
	}
	return strings.TrimSuffix(url, "/")
}

// install downloads an archive and unpacks it as home, which appears whole or
// not at all.
func install(ctx context.Context, log io.Writer, url, sum, home string) (err error) {
	work, err := os.MkdirTemp(filepath.Dir(home), "fetch-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	archive := filepath.Join(work, "archive.jar")
	if err := download(ctx, log, url, sum, archive); err != nil {
		return err
	}
	unpacked := filepath.Join(work, "unpacked")
	if err := unpack(archive, unpacked); err != nil {
		return err
	}
	if err := os.Rename(unpacked, home); err != nil && !errors.Is(err, os.ErrExist) {
		return err // if it exists, another program was faster with the same
	}
	return nil
}

// download writes what url has to path and compares its checksum.
func download(ctx context.Context, log io.Writer, url, sum, path string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: transport()}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	fmt.Fprintf(log, "fetching PostgreSQL from %s (%d MB)\n", url, response.ContentLength>>20)
	got, err := save(response.Body, path)
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	if got != sum {
		return fmt.Errorf("%s: its checksum is %s, which is not the expected %s", url, got, sum)
	}
	return nil
}

// transport is the usual one, but of our own, so that no idle connection outlives a fetch.
func transport() *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: time.Minute, TLSHandshakeTimeout: 20 * time.Second}
}

// save writes a download to path and returns its SHA-256 in hex.
func save(body io.Reader, path string) (string, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(file, hash), io.LimitReader(body, archiveLimit))
	if err := errors.Join(err, file.Close()); err != nil {
		return "", err
	}
	if n == archiveLimit {
		return "", fmt.Errorf("larger than %d bytes", archiveLimit)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

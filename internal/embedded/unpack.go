//go:build unix

package embedded

import (
	"archive/tar"
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/xi2/xz"
)

// unpack unpacks the .txz inside a jar to the new directory dir.
func unpack(jar, dir string) error {
	archive, err := zip.OpenReader(jar)
	if err != nil {
		return err
	}
	defer archive.Close()
	for _, file := range archive.File {
		if strings.HasSuffix(file.Name, ".txz") {
			return unpackTxz(file, dir)
		}
	}
	return errors.New("the archive holds no .txz")
}

func unpackTxz(file *zip.File, dir string) error {
	compressed, err := file.Open()
	if err != nil {
		return err
	}
	defer compressed.Close()
	plain, err := xz.NewReader(compressed, 0)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	// A root refuses every name that leads out of it, by links too.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for entries := tar.NewReader(plain); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return root.Chmod(".", 0o755) // whatever our umask is
		}
		if err == nil {
			err = unpackEntry(root, header, entries)
		}
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
	}
}

func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	name := filepath.Clean(header.Name)
	if err := makeDirs(root, filepath.Dir(name)); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return makeDirs(root, name)
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, name)
	case tar.TypeLink:
		return root.Link(filepath.Clean(header.Linkname), name)
	case tar.TypeReg:
		return writeEntry(root, name, header.FileInfo().Mode().Perm()|0o444, content)
	default:
		return fmt.Errorf("%s: unexpected kind of entry %q", header.Name, header.Typeflag)
	}
}

// makeDirs makes a directory and those on the way to it, for everybody to enter.
func makeDirs(root *os.Root, name string) error {
	if name == "." {
		return nil
	}
	if info, err := root.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := makeDirs(root, filepath.Dir(name)); err != nil {
		return err
	}
	if err := root.Mkdir(name, 0o755); err != nil {
		return err
	}
	return root.Chmod(name, 0o755)
}

// writeEntry writes a file that may be a program. While it is open no other goroutine
// forks: its child would hold the file open for writing for a moment, in which the
// program cannot be run (ETXTBSY).
func writeEntry(root *os.Root, name string, mode os.FileMode, content io.Reader) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Chmod(mode&^0o022), file.Close())
}

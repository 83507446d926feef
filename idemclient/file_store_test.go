package idemclient_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem/idemclient"
)

func openStore(t testing.TB, dir string) *idemclient.FileStore {
	t.Helper()
	s, err := idemclient.OpenFileStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func files(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestStores_keepOneKeyPerIntent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	for name, open := range map[string]func() idemclient.Store{
		"memory": func() func() idemclient.Store {
			m := &idemclient.Memory{}
			return func() idemclient.Store { return m }
		}(),
		"files": func() idemclient.Store { return openStore(t, dir) },
	} {
		ctx := t.Context()
		keep := func(intent, key, want string) {
			t.Helper()
			if got, err := open().Keep(ctx, intent, key); got != want || err != nil {
				t.Errorf("%s: Keep(%q, %q) is %q %v, want %q", name, intent, key, got, err, want)
			}
		}
		keep("order:1", "a", "a")
		keep("order:1", "b", "a")
		keep("../../etc/passwd\n\"ü", "c", "c")
		keep("../../etc/passwd\n\"ü", "d", "c")
		for range 2 { // the second time there is nothing to forget
			if err := open().Forget(ctx, "order:1"); err != nil {
				t.Errorf("%s: Forget: %v", name, err)
			}
		}
		keep("order:1", "b", "b")
		keep("../../etc/passwd\n\"ü", "e", "c")
	}
	if got := files(t, dir); len(got) != 2 || strings.HasPrefix(got[0], ".new") {
		t.Errorf("the directory holds %v, want two files", got)
	}
}

func TestFileStore_oneKeyWinsAmongMany(t *testing.T) {
	dir := t.TempDir()
	const n = 32
	got := make([]string, n)
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		s := openStore(t, dir)
		all.Go(func() {
			<-start
			key, err := s.Keep(t.Context(), "order:1", strings.Repeat("k", i+1))
			if err != nil {
				t.Error(err)
			}
			got[i] = key
		})
	}
	close(start)
	all.Wait()
	for i := range n {
		if got[i] != got[0] || got[i] == "" {
			t.Fatalf("got %q, want one key", got)
		}
	}
	if left := files(t, dir); len(left) != 1 {
		t.Errorf("the directory holds %v, want one file", left)
	}
}

func TestFileStore_isTheOwnersOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if _, err := openStore(t, dir).Keep(t.Context(), "order:1", "k"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, files(t, dir)[0])} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v %v, want nothing for others", path, info.Mode(), err)
		}
	}
}

func TestFileStore_damagedFileIsAnErrorNotANewKey(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	for _, intent := range []string{"order:1", "order:2"} {
		if _, err := s.Keep(t.Context(), intent, "k"); err != nil {
			t.Fatal(err)
		}
	}
	names := files(t, dir)
	first, second := filepath.Join(dir, names[0]), filepath.Join(dir, names[1])
	write := func(content string) func() error {
		return func() error { return os.WriteFile(first, []byte(content), 0o600) }
	}
	for name, damage := range map[string]func() error{
		"empty":      write(""),
		"cut":        write(`{"intent":"order:1","ke`),
		"no key":     write(`{"intent":"order:1"}`),
		"bad key":    write(`{"intent":"order:1","key":"a b"}`),
		"another's":  func() error { return os.Link(second, first) },
		"not a file": func() error { return os.Mkdir(first, 0o700) },
	} {
		if err := os.RemoveAll(first); err != nil {
			t.Fatal(err)
		}
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		failed := 0
		for _, intent := range []string{"order:1", "order:2"} { // either may be the first file
			if key, err := s.Keep(t.Context(), intent, "new"); err != nil {
				failed++
			} else if key != "k" {
				t.Errorf("%s: a new key %q was kept", name, key)
			}
		}
		if failed != 1 {
			t.Errorf("%s: %d of 2 intents failed, want 1", name, failed)
		}
	}
}

func TestFileStore_refusesWhatItCannotKeep(t *testing.T) {
	s := openStore(t, t.TempDir())
	if _, err := s.Keep(t.Context(), "", "k"); !errors.Is(err, idemclient.ErrIntentInvalid) {
		t.Errorf("got %v, want an invalid intent", err)
	}
	if _, err := s.Keep(t.Context(), "order:1", ""); !errors.Is(err, idemclient.ErrKeyInvalid) {
		t.Errorf("got %v, want an invalid key", err)
	}
	if _, err := idemclient.OpenFileStore(filepath.Join(t.TempDir(), "a", "b")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want a missing parent", err)
	}
}

func TestFileStore_clearsUpWhatKilledProcessesLeft(t *testing.T) {
	dir := t.TempDir()
	past := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{".new-old", ".new-young", "other"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if name != ".new-young" {
			if err := os.Chtimes(path, past, past); err != nil {
				t.Fatal(err)
			}
		}
	}
	openStore(t, dir)
	if got := strings.Join(files(t, dir), " "); got != ".new-young other" {
		t.Errorf("left are %q, want the young one and what is not ours", got)
	}
}

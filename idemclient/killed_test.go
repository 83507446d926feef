package idemclient_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/idemclient"
)

// The environment of a child: its store, where it sends, and whether it stops for
// good before the first byte.
const (
	childStore = "IDEM_TEST_CLIENT_STORE"
	childURL   = "IDEM_TEST_CLIENT_URL"
	childStop  = "IDEM_TEST_CLIENT_STOP"
)

// sendAsChild sends one intent and tells what came.
func sendAsChild(dir, url string, stop bool) int {
	err := func() error {
		store, err := idemclient.OpenFileStore(dir)
		if err != nil {
			return err
		}
		var last http.RoundTripper
		if stop {
			last = base(func(r *http.Request) (*http.Response, error) {
				fmt.Println("minted", r.Header.Get(header))
				time.Sleep(time.Minute) // to be killed
				return nil, errors.New("not killed")
			})
		}
		transport, err := idemclient.New(idemclient.Config{Store: store, Base: last})
		if err != nil {
			return err
		}
		ctx := idemclient.WithIntent(context.Background(), "order:42:pay")
		resp, body, err := post(ctx, &http.Client{Transport: transport}, url, "pay")
		if err != nil {
			return err
		}
		fmt.Println("answered", resp.StatusCode, body)
		return nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// startChild starts a client. It is killed when the test ends, or after a minute.
func startChild(t testing.TB, dir, url, stop string) (lines *bufio.Scanner, kill func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childStore+"="+dir, childURL+"="+url, childStop+"="+stop)
	return runChild(t, cmd, cancel)
}

// runChild runs cmd until kill is called, the test ends, or its context does, which
// cancel ends. lines are what it says.
func runChild(t testing.TB, cmd *exec.Cmd, cancel func()) (lines *bufio.Scanner, kill func()) {
	t.Helper()
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		cancel() // SIGKILL
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	return bufio.NewScanner(stdout), kill
}

func await(t testing.TB, lines *bufio.Scanner, word string) string {
	t.Helper()
	if !lines.Scan() {
		t.Fatalf("the child ended without saying %q", word)
	}
	rest, ok := strings.CutPrefix(lines.Text(), word+" ")
	if !ok {
		t.Fatalf("the child said %q, want %q", lines.Text(), word)
	}
	return rest
}

func TestKilled_afterMintingRetriesWithTheSameKey(t *testing.T) {
	dir := t.TempDir()
	s := newServer(t, answer(201, "made"))
	lines, kill := startChild(t, dir, s.URL, "yes")
	minted := await(t, lines, "minted")
	kill()
	if got := s.got(); len(got) != 0 {
		t.Fatalf("%+v arrived before the first byte was sent", got)
	}
	lines, _ = startChild(t, dir, s.URL, "")
	if got := await(t, lines, "answered"); got != "201 made" {
		t.Errorf("the second process got %q", got)
	}
	if key := s.wantSame(t, 1, "pay"); key != minted {
		t.Errorf("the second process sent the key %q, want the first one's %q", key, minted)
	}
}

func TestKilled_whileWaitingRetriesWithTheSameKey(t *testing.T) {
	dir := t.TempDir()
	arrived := make(chan struct{})
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		silent(w, r)
	}, answer(201, "made"))
	_, kill := startChild(t, dir, s.URL, "")
	select {
	case <-arrived:
	case <-time.After(30 * time.Second):
		t.Fatal("the first process sent nothing")
	}
	kill()
	lines, _ := startChild(t, dir, s.URL, "")
	if got := await(t, lines, "answered"); got != "201 made" {
		t.Errorf("the second process got %q", got)
	}
	s.wantSame(t, 2, "pay")
}

package queue_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/queue"
)

const page = "../docs/tasks.md"

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks are the parts of docs/tasks.md in one language.
func blocks(t *testing.T, language string) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```\n").FindAllStringSubmatch(read(t, page), -1) {
		all = append(all, m[1])
	}
	if len(all) == 0 {
		t.Fatalf("%s has no %s", page, language)
	}
	return all
}

// flat is Go without its indentation.
func flat(code string) string {
	lines := strings.Split(code, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

// TestDocs_theProgramsOnThePageAreThoseThatRun compares the programs with the files that
// are compiled and run, and each of the other pieces of Go with the examples.
func TestDocs_theProgramsOnThePageAreThoseThatRun(t *testing.T) {
	programs := []string{read(t, "../examples/tasks/receipts/main.go"), read(t, "../examples/tasks/refunds/main.go")}
	examples := flat(read(t, "example_test.go"))
	shown := 0
	for _, block := range blocks(t, "go") {
		switch {
		case slices.Contains(programs, block):
			shown++
		case strings.Contains(block, "package main") || !strings.Contains(examples, flat(block)):
			t.Errorf("not in a program below examples/tasks nor in queue/example_test.go:\n%s", block)
		}
	}
	if shown != len(programs) {
		t.Errorf("%s shows %d whole programs, want %d", page, shown, len(programs))
	}
	if js := blocks(t, "js"); len(js) != 1 || js[0] != read(t, "../examples/node/order.mjs") {
		t.Errorf("the JavaScript on %s is not examples/node/order.mjs", page)
	}
}

// TestDocs_theNumbersOnThePageAreThoseOfTheCode holds what the page says in passing.
func TestDocs_theNumbersOnThePageAreThoseOfTheCode(t *testing.T) {
	text := strings.Join(strings.Fields(read(t, page)), " ")
	for _, says := range numbers() {
		if !strings.Contains(text, says) {
			t.Errorf("%s does not say %q", page, says)
		}
	}
}

// numbers are what docs/tasks.md says of limits and defaults.
func numbers() []string {
	hours := func(d time.Duration) int { return int(d.Hours()) }
	return []string{
		fmt.Sprintf("`Options.Timeout` (%d min)", int(queue.DefaultTimeout.Minutes())),
		fmt.Sprintf("`Options.Backoff` (%d s) to `Options.MaxBackoff` (%d h)", int(queue.DefaultBackoff.Seconds()), hours(queue.DefaultMaxBackoff)),
		fmt.Sprintf("`Options.MaxAttempts`, %d)", queue.DefaultMaxAttempts),
		fmt.Sprintf("`Options.Retention` (%d days)", hours(queue.DefaultRetention)/24),
		fmt.Sprintf("`Config.Poll` (%d s)", int(queue.DefaultPoll.Seconds())),
		fmt.Sprintf("`Config.Grace`, %d s", int(queue.DefaultGrace.Seconds())),
		fmt.Sprintf("`Config.Concurrency`, %d;", queue.DefaultConcurrency),
		fmt.Sprintf("within their lease (%d s)", int(queue.DefaultLease.Seconds())),
		fmt.Sprintf("(%d to %d, 0 if nothing is said)", queue.MinPriority, queue.MaxPriority),
		fmt.Sprintf("a payload beyond %d MiB", queue.MaxPayload>>20),
		fmt.Sprintf("`priority` (0), `max_attempts` (%d), `retention` (seconds; %d)", queue.DefaultMaxAttempts, int(queue.DefaultRetention.Seconds())),
	}
}

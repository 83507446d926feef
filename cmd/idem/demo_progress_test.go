package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/storm"
)

func TestDemoProgress_rewritesOneLineOnATerminal(t *testing.T) {
	var out bytes.Buffer
	p := newDemoProgress(&out, true)
	p.tell(storm.Progress{Done: 10, Planned: 20, Cuts: 1_000})
	p.tell(storm.Progress{Done: 9, Planned: 20})
	p.end()
	lines := strings.Split(out.String(), "\r")
	if len(lines) != 3 || lines[0] != "" || strings.Count(out.String(), "\n") != 1 || len(lines[2]) != len(lines[1])+1 {
		t.Errorf("got %q, want two lines of one width, one written over the other", out.String())
	}
	if !strings.HasPrefix(lines[1], "storm: 10 of 20 answered, shops killed: 0, bank killed: 0, connections cut: 1000") {
		t.Errorf("got %q", lines[1])
	}
}

func TestDemoProgress_writesALineNowAndThenElsewhere(t *testing.T) {
	var out bytes.Buffer
	p := newDemoProgress(&out, false)
	p.tell(storm.Progress{Done: 1, Planned: 3})
	p.told = time.Now().Add(-progressLineEvery)
	p.tell(storm.Progress{Done: 2, Planned: 3, Kills: 1, BankKills: 2})
	p.tell(storm.Progress{Done: 3, Planned: 3, Kills: 1, BankKills: 2})
	p.end()
	const want = "storm: 2 of 3 answered, shops killed: 1, bank killed: 2, connections cut: 0\n" +
		"storm: 3 of 3 answered, shops killed: 1, bank killed: 2, connections cut: 0\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

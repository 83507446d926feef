package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/idem-go/idem/internal/storm"
)

// progressLineEvery is how often a line is written where lines stay.
const progressLineEvery = 2 * time.Second

// demoProgress tells how far the storm is: on a terminal in one line that is
// written over, elsewhere in a line now and then.
type demoProgress struct {
	w        io.Writer
	terminal bool
	told     time.Time
	width    int // of the line that is to be written over
}

func newDemoProgress(w io.Writer, terminal bool) *demoProgress {
	return &demoProgress{w: w, terminal: terminal, told: time.Now()}
}

func (p *demoProgress) tell(at storm.Progress) {
	line := fmt.Sprintf("storm: %d of %d answered, shops killed: %d, bank killed: %d, connections cut: %d",
		at.Done, at.Planned, at.Kills, at.BankKills, at.Cuts)
	done := at.Done == at.Planned
	switch {
	case p.terminal:
		fmt.Fprintf(p.w, "\r%s%s", line, strings.Repeat(" ", max(0, p.width-len(line))))
		p.width = len(line)
	case done || time.Since(p.told) >= progressLineEvery:
		p.told = time.Now()
		fmt.Fprintln(p.w, line)
	}
}

// end leaves the line that is written over.
func (p *demoProgress) end() {
	if p.width > 0 {
		fmt.Fprintln(p.w)
	}
}

// isTerminal reports whether w is one.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

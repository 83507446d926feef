package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/idem-go/idem/internal/storm"
)

const (
	// demoSlow is how long tok_slow takes: long enough to be seen.
	demoSlow = 500 * time.Millisecond
	// demoLease is short, so that nobody waits long for the payment of a shop that is
	// gone.
	demoLease = 2 * time.Second
	// demoBankLog is the bank's log in a data directory of the embedded PostgreSQL,
	// which leaves it alone: the charges are kept as long as the payments.
	demoBankLog = "idem.bank.log"
)

// demoBank is the demo's bank and where its log is.
type demoBank struct {
	*storm.Bank
	log string
	own string // a directory of the log's own, removed at the end; empty: the log is with the data
}

// openDemoBank starts the bank, with its log beside the database's data if that is
// ours, and else in a temporary directory.
func openDemoBank(d *demoDatabase) (b *demoBank, err error) {
	self, err := demoSelf()
	if err != nil {
		return nil, err
	}
	b = &demoBank{}
	if d.server != nil {
		b.log = filepath.Join(d.server.DataDir(), demoBankLog)
	} else {
		if b.own, err = os.MkdirTemp("", "idem-bank-"); err != nil {
			return nil, exitf(exitFailed, "the bank has nowhere to write its log: %w", err)
		}
		b.log = filepath.Join(b.own, demoBankLog)
	}
	b.Bank, err = storm.OpenBank(func(listen string) *exec.Cmd {
		cmd := exec.Command(self, "demo-bank", "--log", b.log, "--listen", listen, "--slow", demoSlow.String())
		if b.own != "" {
			cmd.Args = append(cmd.Args, "--temporary")
		}
		// A group of its own keeps a terminal's Ctrl-C away from it, so that the shop
		// can finish its payments first.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return cmd
	})
	if err != nil {
		return nil, errors.Join(exitf(exitFailed, "%w", err), b.removeLog())
	}
	return b, nil
}

// close ends the bank, and with it a log that is not with the data.
func (b *demoBank) close() error {
	return errors.Join(b.Bank.Close(), b.removeLog())
}

func (b *demoBank) removeLog() error {
	if b.own == "" {
		return nil
	}
	return os.RemoveAll(b.own)
}

// Command idem is the one command of Idem: the demo, the schema, the admin
// commands and the checks. Run "idem --help" for the list.
//
// Data goes to stdout and messages to stderr. Exit codes: 0 done, 1 failed,
// 2 usage, 3 not found, 4 refused, 5 check failed, 6 unavailable.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	stop()
	os.Exit(code)
}

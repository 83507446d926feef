package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"

	"github.com/idem-go/idem/bench/internal/machine"
)

// serveArgument is the first argument of this program as a server.
const serveArgument = "serve"

// serve is the server's process: a subject's name, the database, the pool's size
// and Redis's address. It says its address, then answers every line of in (see
// told), and ends with in.
func serve(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 4 {
		return errors.New("serve: want SUBJECT DATABASE POOL REDIS")
	}
	i := slices.IndexFunc(subjects, func(s subject) bool { return s.name == args[0] })
	size, err := strconv.Atoi(args[2])
	if i < 0 || err != nil {
		return fmt.Errorf("serve: no subject %q, or no number %q", args[0], args[2])
	}
	pool, err := machine.OpenPool(context.Background(), args[1], size)
	if err != nil {
		return err
	}
	defer pool.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- subjects[i].serve(ln, pool, args[3]) }()
	fmt.Fprintln(out, ln.Addr())
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			fmt.Fprintln(out, told(lines.Text()))
		}
	}()
	select {
	case err := <-served:
		return err
	case <-asked:
		return nil // the process ends, and its connections with it
	}
}

// told does what a line says and answers it: "cpu" with the CPU time in ns that
// this process has used, "profile FILE" and "profiled" with "ok" or an error.
func told(line string) string {
	var err error
	switch word, file, _ := strings.Cut(line, " "); word {
	case "cpu":
		return strconv.FormatInt(int64(machine.OwnCPU()), 10)
	case "profile":
		var f *os.File
		if f, err = os.Create(file); err == nil {
			err = pprof.StartCPUProfile(f) // the file is closed with the process
		}
	case "profiled":
		pprof.StopCPUProfile()
	default:
		err = fmt.Errorf("unknown command %q", line)
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}

package pgtest

import (
	"context"
	"fmt"
	"testing"
)

// example is as much of a testing.TB as an example needs: its failures panic,
// since an example has no other way to fail than by what it prints.
type example struct {
	testing.TB
	cleanups []func()
}

func (e *example) Helper()                      {}
func (e *example) Context() context.Context     { return context.Background() }
func (e *example) Cleanup(fn func())            { e.cleanups = append(e.cleanups, fn) }
func (e *example) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (e *example) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (e *example) Errorf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

// end runs the cleanups, last first.
func (e *example) end() {
	for i := len(e.cleanups) - 1; i >= 0; i-- {
		e.cleanups[i]()
	}
}

package idemhttp_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// A handler that returns while its call is under way does not know what it answers
// for; the call that comes to an end afterwards is recorded all the same.
func TestCall_leftBehindIsUnknownUntilItHasEnded(t *testing.T) {
	r := newRig(t)
	calling, finish, over := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	first := true
	r.handle("/pay", idemhttp.Route{Lease: 2 * time.Second}, func(w http.ResponseWriter, req *http.Request) {
		ctx := context.WithoutCancel(req.Context())
		call := func() error {
			_, err := idem.Call(ctx, charge(), func(context.Context, string) (receipt, error) {
				close(calling)
				<-finish
				return receipt{1}, nil
			})
			return err
		}
		if first {
			first = false
			go func() {
				over <- call()
				over <- call() // after the handler has returned
			}()
			<-calling
		} else if err := call(); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
	r.wantState("k", "claimed")
	close(finish)
	if err := <-over; err != nil {
		t.Errorf("the call that was left behind: %v", err)
	}
	if err := <-over; !errors.Is(err, idem.ErrInFlight) {
		t.Errorf("a call after the handler has returned: %v", err)
	}
	r.want(r.send(post("/pay", "k", "{}")), 201, "")
	r.wantRows("select count(*) from idem.applied_effects where status = 'applied' and calls = 1", 1)
}

package idemtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/idem-go/idem/internal/faultproxy"
)

// steps are messages, named by a letter for who sends and the type.
func steps(names ...string) []step {
	var all []step
	for _, name := range names {
		from := faultproxy.FromClient
		if name[0] == 's' {
			from = faultproxy.FromServer
		}
		all = append(all, step{Message: faultproxy.Message{Conn: 1, Direction: from, Type: name[2:]}, Nth: 1})
	}
	return all
}

func named(points []point) []string {
	var names []string
	for _, p := range points {
		names = append(names, fmt.Sprint(p))
	}
	return names
}

func TestPoints_everyMessageIsLostAndEveryLastOneArrives(t *testing.T) {
	all := steps("c Parse", "c Execute", "s DataRow", "s DataRow", "s DataRow", "s DataRow", "s CommandComplete", "c Sync")
	run := rehearsal{all, []call{{"POST", "/charges", 1}, {"POST", "/charges", 2}}}
	for name, c := range map[string]struct{ got, want []string }{
		"cut": {named(cutPoints(run)), []string{
			"client Parse being lost", "client Execute being lost", "client Execute being the last to arrive",
			"server DataRow being lost", "server DataRow being lost", "server CommandComplete being lost", "server CommandComplete being the last to arrive",
			"client Sync being lost", "client Sync being the last to arrive",
			"call POST /charges being lost", "call POST /charges being carried out and its reply lost", "call POST /charges being answered and its connection cut",
			"call POST /charges #2 being lost", "call POST /charges #2 being carried out and its reply lost", "call POST /charges #2 being answered and its connection cut"}},
		"killed": {named(killPoints(run)), []string{
			"client Parse being lost", "client Execute being lost", "client Execute being the last to arrive",
			"server DataRow being lost", "server DataRow being lost", "server CommandComplete being lost",
			"client Sync being lost", "client Sync being the last to arrive",
			"call POST /charges being lost", "call POST /charges being carried out and its reply lost",
			"call POST /charges #2 being lost", "call POST /charges #2 being carried out and its reply lost"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s:\n got  %q\n want %q", name, c.got, c.want)
		}
	}
}

func TestChild_runsExactlyOneTest(t *testing.T) {
	if got, want := exactly("TestA/with_(signs)/b"), `^TestA$/^with_\(signs\)$/^b$`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

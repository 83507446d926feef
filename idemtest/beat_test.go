package idemtest

import (
	"slices"
	"testing"

	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgsql/keys"
)

// said are messages of a handler's connection, 1, and of a heartbeat's, 2.
func said(beats bool) (all []step) {
	say := func(conn int, direction faultproxy.Direction, kind, sql string) {
		m := faultproxy.Message{Conn: conn, Direction: direction, Type: kind, SQL: sql}
		n := 1
		for _, s := range all {
			if s.Direction == direction && s.Type == kind && s.SQL == sql {
				n++
			}
		}
		all = append(all, step{Message: m, Nth: n})
	}
	statement := func(conn int, sql string) {
		say(conn, faultproxy.FromClient, "Execute", sql)
		say(conn, faultproxy.FromClient, "Sync", "")
		say(conn, faultproxy.FromServer, "ReadyForQuery", "")
	}
	statement(1, "select 1")
	if beats {
		say(2, faultproxy.FromClient, "StartupMessage", "")
		say(2, faultproxy.FromServer, "ReadyForQuery", "")
		statement(2, keys.Renew)
	}
	statement(1, "select 2")
	if beats {
		statement(2, keys.Renew)
	}
	statement(1, "select 1")
	return all
}

func TestBeats_aRunWithThemIsTheRunWithout(t *testing.T) {
	without, with := withoutBeats(said(false)), withoutBeats(said(true))
	if !slices.Equal(without, with) {
		t.Fatalf("without heartbeats:\n %v\nwith them:\n %v", without, with)
	}
	if !slices.Equal(without, said(false)) {
		t.Errorf("got %v, want all of %v", without, said(false))
	}
	for i, s := range without {
		for _, beats := range []bool{false, true} {
			when := ignoringBeats(s.When())
			var met []step
			for _, seen := range said(beats) {
				if when(seen.Message) {
					met = append(met, seen)
				}
			}
			if len(met) != 1 || met[0].Conn != 1 || met[0].SQL != s.SQL || met[0].Type != s.Type {
				t.Errorf("message %d, %v (heartbeats: %v): met %v, want it once", i, s, beats, met)
			}
		}
	}
}

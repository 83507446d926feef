package storm

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

func TestPlan_aSeedRepeatsIt(t *testing.T) {
	m := marks{firstCustomer: 1, firstSlot: time.Unix(0, 0).UTC(), key: "k"}
	planned := func(seed uint64) plan { return newPlan(rand.New(rand.NewPCG(seed, 0)), 100, m) }
	if !reflect.DeepEqual(planned(1), planned(1)) {
		t.Error("one seed made two plans")
	}
	if reflect.DeepEqual(planned(1), planned(2)) {
		t.Error("two seeds made one plan")
	}
}

func TestPlan_isHostileInEveryWay(t *testing.T) {
	m := marks{firstCustomer: 1, firstSlot: time.Unix(0, 0).UTC(), key: "k"}
	p := newPlan(rand.New(rand.NewPCG(1, 0)), 200, m)
	at := make([]int, 200)
	again := make([]int, 200)
	var altered, hangUps, quoted int
	for number, wave := range p.orderWaves {
		for _, s := range wave {
			switch {
			case s.altered && number == 0:
				t.Error("an altered request may come first")
			case s.altered:
				altered++
			case s.hangUp:
				hangUps++
			case number == 0:
				at[s.intent]++
			default:
				again[s.intent]++
			}
			if s.quoted {
				quoted++
			}
		}
	}
	most := 0
	for i := range at {
		if at[i] < 1 || at[i] > maxCopies || again[i] < 1 {
			t.Errorf("intent %d: %d copies at once and %d later; want 1 to %d, and 1", i, at[i], again[i], maxCopies)
		}
		most = max(most, at[i])
	}
	if altered != 40 || hangUps != 25 || quoted == 0 || most != maxCopies {
		t.Errorf("got %d altered, %d hang-ups, %d quoted keys, at most %d copies", altered, hangUps, quoted, most)
	}
	shared := 0
	for i := 1; i < len(p.orders); i++ {
		if p.orders[i].key == p.orders[i-1].key {
			shared++
			if p.orders[i].principal == p.orders[i-1].principal || p.orders[i].order() != p.orders[i-1].order() {
				t.Errorf("intents %d and %d share a key, not only a body", i-1, i)
			}
		}
	}
	if shared != 20 || len(p.bookings) != 60 {
		t.Errorf("got %d shared keys and %d bookings, want 20 and 60", shared, len(p.bookings))
	}
}

func TestPlan_killsShopsClientsAndBankUntilNearItsEnd(t *testing.T) {
	m := marks{firstCustomer: 1, firstSlot: time.Unix(0, 0).UTC(), key: "k"}
	for seed := range uint64(20) {
		p := newPlan(rand.New(rand.NewPCG(seed, 0)), 200, m)
		var shops [shopCount]int
		clients, banks, before := 0, 0, 0
		for _, s := range p.strikes {
			if s.after < before || s.after == 0 || s.after > p.sends()*95/100 {
				t.Errorf("seed %d: a kill after %d of %d sends and after that at %d", seed, s.after, p.sends(), before)
			}
			before = s.after
			switch s.whom {
			case aClient:
				clients++
			case theBank:
				banks++
			default:
				shops[s.index]++
			}
		}
		if shops[0] != shops[1] || shops[0]+shops[1] != shopKills+moneyKills || clients != clientKills || banks != moneyKills {
			t.Errorf("seed %d: got %v kills of shops, %d of clients and %d of the bank", seed, shops, clients, banks)
		}
	}
}

func TestLoopbackOnly_refusesEveryOtherAddress(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:80": true, "[::1]:80": true, "127.8.9.1:1": true,
		"192.0.2.1:80": false, "0.0.0.0:80": false, "[2001:db8::1]:80": false, "": false} {
		if err := loopbackOnly("tcp", address, nil); (err == nil) != want {
			t.Errorf("%q: got %v, want allowed: %v", address, err, want)
		}
	}
}

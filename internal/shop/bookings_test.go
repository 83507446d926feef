package shop_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/idem-go/idem/internal/shop"
)

func TestBookings_takenSlotIsRefusedAndRemembered(t *testing.T) {
	r := open(t, shop.Config{})
	const slot = `{"customer_id":1,"slot":"2027-01-15T19:00"}`
	won := r.must("POST", "/bookings", slot, "Idempotency-Key", "winner")
	if want := `{"id":1,"customer_id":1,"slot":"2027-01-15T19:00"}`; won.status != 201 || won.body != want {
		t.Fatalf("got %d %s, want 201 %s", won.status, won.body, want)
	}
	lost := r.must("POST", "/bookings", `{"customer_id":2,"slot":"2027-01-15T19:00"}`, "Idempotency-Key", "loser")
	if lost.status != 409 || lost.code(t) != "slot-taken" {
		t.Errorf("got %d %s, want 409 slot-taken", lost.status, lost.body)
	}
	if _, err := r.pool.Exec(t.Context(), "delete from shop.bookings"); err != nil {
		t.Fatal(err)
	}
	again := r.must("POST", "/bookings", `{"customer_id":2,"slot":"2027-01-15T19:00"}`, "Idempotency-Key", "loser")
	if again.status != 409 || again.body != lost.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("after the slot was freed: got %d %s, want the remembered refusal", again.status, again.body)
	}
	r.wantRows("shop.bookings", 0)
}

func TestBookings_oneOfManyGetsTheSlot(t *testing.T) {
	r := open(t, shop.Config{})
	const racers = 12
	statuses := make([]int, racers)
	var all sync.WaitGroup
	for i := range racers {
		all.Go(func() {
			got, err := r.send("POST", "/bookings", fmt.Sprintf(`{"customer_id":%d,"slot":"2027-01-15T19:00"}`, i+1),
				"Idempotency-Key", fmt.Sprintf("racer-%d", i))
			if err != nil {
				t.Error(err)
			}
			statuses[i] = got.status
		})
	}
	all.Wait()
	count := map[int]int{}
	for _, status := range statuses {
		count[status]++
	}
	if count[201] != 1 || count[409] != racers-1 {
		t.Errorf("got %v, want one 201 and %d times 409", count, racers-1)
	}
	r.wantRows("shop.bookings", 1)
}

func TestBookings_refusesWhatIsNoSlot(t *testing.T) {
	r := open(t, shop.Config{})
	for _, slot := range []string{"", "2027-01-15", "2027-01-15T19:00:00", "2027-01-15T19:00Z", "2027-02-30T19:00",
		"2027-01-15T24:00", "1999-12-31T23:59", "0000-00-00T00:00", "tomorrow"} {
		got := r.must("POST", "/bookings", fmt.Sprintf(`{"customer_id":1,"slot":%q}`, slot), "Idempotency-Key", "k")
		if got.status != 422 || got.code(t) != "booking-invalid" {
			t.Errorf("%q: got %d %s, want 422", slot, got.status, got.body)
		}
	}
	if got := r.must("POST", "/bookings", `{"customer_id":0,"slot":"2027-01-15T19:00"}`, "Idempotency-Key", "k"); got.status != 422 {
		t.Errorf("customer 0: got %d %s, want 422", got.status, got.body)
	}
	r.wantRows("shop.bookings", 0)
}

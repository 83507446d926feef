package shop_test

import (
	"slices"
	"testing"

	"github.com/idem-go/idem/internal/shop"
)

func TestUnsettled_isWhatOnlyTheBankKnows(t *testing.T) {
	r, b := openPaying(t, shop.Config{})
	want := func(what string, first, last int64, want ...shop.UnsettledEffect) {
		t.Helper()
		got, err := shop.Unsettled(t.Context(), r.pool, first, last)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", what, got, err, want)
		}
	}
	want("before it is paid", 1, 1000)
	r.wantRefused(r.pay("k", "tok_keyless_lost"), 409, "outcome-unknown")
	want("its reply is lost", 1, 1000, shop.UnsettledEffect{Scope: "shop", Effect: "charge:payment:1", Unknown: true, Calls: 1, Calling: true})
	want("other customers", 1000, 2000)
	b.want(1, 0)
}

package idemhttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem/idemhttp"
)

func TestP2_nameThatIsNotCanonicalIsReplayed(t *testing.T) {
	r := newRig(t)
	r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["ETag"] = []string{`"v1"`} // as net/http's own FileServer spells it
		w.Header()["location"] = []string{"/orders/1"}
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	for _, replayed := range []bool{false, true} {
		got := r.send(post("/x", "k", "{}"))
		r.want(got, 201, "")
		if got.replayed() != replayed || got.header.Get("Etag") != `"v1"` || got.header.Get("Location") != "/orders/1" {
			t.Errorf("got %v, replayed %v, want ETag and Location, %v", got.header, got.replayed(), replayed)
		}
	}
}

func TestP1_wrongContentLengthIsSetRight(t *testing.T) {
	r := newRig(t)
	r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		w.Header().Set("Content-Length", req.URL.Query().Get("n"))
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "hello")
	})
	r.serve()
	for _, n := range []string{"3", "10", "-1", "abc", "5"} {
		for _, replayed := range []bool{false, true} {
			got := r.send(post("/x?n="+n, "k"+n, "{}"))
			r.want(got, 201, "")
			if got.body != "hello" || got.header.Get("Content-Length") != "5" || got.replayed() != replayed {
				t.Errorf("with %s got %q %v, replayed %v", n, got.body, got.header, got.replayed())
			}
		}
	}
	r.wantRows("select count(*) from orders", 5)
}

func TestP5_headerTooLargeToStoreIsWithheld(t *testing.T) {
	r := newRig(t)
	r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		w.Header().Set("Location", "/"+strings.Repeat("x", 64<<10))
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	first := r.send(post("/x", "k", "{}"))
	r.want(first, 201, "")
	if n := len(first.header.Get("Location")); n != 64<<10+1 {
		t.Errorf("the first got a Location of %d bytes", n)
	}
	r.want(r.send(post("/x", "k", "{}")), 409, "answer-withheld")
	r.wantState("k", "withheld")
	r.wantRows("select count(*) from orders", 1)
}

package admin_test

import (
	"context"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// remember plants an answered key that was created so many seconds ago and
// expires in an hour, with a body of its own.
const remember = `
insert into idem.idempotency_keys
      (scope, key, fence, state, fingerprint_version, fingerprint,
       response_status, response_headers, response_body, created_at, expires_at)
values ($1::text, $2::text, gen_random_uuid(), 'answered', 1, sha256(convert_to($2, 'UTF8')),
       201, array['ETag', '"1"', 'Link', '</a>', 'Link', '</b>']::bytea[], convert_to($1 || $2, 'UTF8'),
       date_trunc('second', clock_timestamp()) - make_interval(secs => $3),
       clock_timestamp() + interval '1 hour')`

// open returns a database of this test's own with the given keys in it.
func open(t *testing.T, keys ...planted) *idem.DB {
	t.Helper()
	pool := pgtest.New(t)
	for _, k := range keys {
		if _, err := pool.Exec(t.Context(), remember, k.scope, k.key, k.age); err != nil {
			t.Fatal(err)
		}
	}
	db, err := idem.Open(context.Background(), pool, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

type planted struct {
	scope, key string
	age        int // seconds
}

package main

import (
	"context"
	"net"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"
)

// subject is one way to serve POST /orders.
type subject struct {
	name string
	// serve answers requests until the listener is closed.
	serve func(ln net.Listener, pool *pgxpool.Pool, redis string) error
	// once says that a key is promised to make one order.
	once bool
	// keys is the query for the size of the table that remembers keys, if PostgreSQL
	// does.
	keys string
	// only are the phases in which it takes part; nil means all.
	only []string
	// redis says that Redis remembers keys.
	redis bool
}

// unprotected is what the others are measured against. Again is the same once
// more: how far it is from 1 is what the machine's noise does to a ratio.
const (
	unprotected = "unprotected"
	again       = "unprotected, again"
	article     = "article"
	ours        = "idem"
	oursLazy    = "idem, LazyClaim"
	oursWatched = "idem, watched"
	oursLease   = "idem, lease"
	usualLease  = "lease, the usual way"
)

var subjects = []subject{
	{name: unprotected, serve: overHTTP(newUnprotected)},
	{name: article, serve: overHTTP(newArticle), once: true, keys: keysArticle},
	{name: ours, serve: overHTTP(newOurs(false)), once: true, keys: keysIdem},
	{name: oursWatched, serve: overHTTP(newWatched), once: true, keys: keysIdem, only: oneByOne},
	{name: "fiber, memory", serve: serveFiberMemory, once: true},
	{name: oursLease, serve: overHTTP(newLeased), once: true, keys: keysIdem, only: oneByOne},
	{name: usualLease, serve: overHTTP(newUsualLease), once: true, keys: keysUsual, only: oneByOne},
	{name: again, serve: overHTTP(newUnprotected)},
	{name: oursLazy, serve: overHTTP(newOurs(true)), once: true, keys: keysIdem},
	{name: "fiber, Redis", serve: serveFiberRedis, once: true, redis: true},
}

// oneByOne are the phases without duplicates at once: the usual lease tells those to
// come back, so there is nothing to compare; and what watching costs is seen without them.
var oneByOne = []string{fresh, replays}

func (s subject) takesPart(phase string) bool { return s.only == nil || slices.Contains(s.only, phase) }

// overHTTP serves with net/http, as most users of the library do.
func overHTTP(build func(context.Context, *pgxpool.Pool) (http.Handler, error)) func(net.Listener, *pgxpool.Pool, string) error {
	return func(ln net.Listener, pool *pgxpool.Pool, _ string) error {
		handler, err := build(context.Background(), pool)
		if err != nil {
			return err
		}
		mux := http.NewServeMux()
		mux.Handle("POST /orders", handler)
		return http.Serve(ln, mux)
	}
}

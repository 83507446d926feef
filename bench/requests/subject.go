package main

import (
	"context"
	"net"
	"net/http"
	"slices"

	"github.com/idem-go/idem/bench/internal/watched"
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
	// watched says that it is the library with somebody watching, which is compared with
	// the library alone, and not with others.
	watched bool
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

var subjects = slices.Concat(peers, watchings)

// peers are compared with each other.
var peers = []subject{
	{name: unprotected, serve: overHTTP(newUnprotected)},
	{name: article, serve: overHTTP(newArticle), once: true, keys: keysArticle},
	{name: ours, serve: overHTTP(newOurs(false)), once: true, keys: keysIdem},
	{name: "fiber, memory", serve: serveFiberMemory, once: true},
	{name: oursLease, serve: overHTTP(newLeased), once: true, keys: keysIdem, only: oneByOne},
	{name: usualLease, serve: overHTTP(newUsualLease), once: true, keys: keysUsual, only: oneByOne},
	{name: again, serve: overHTTP(newUnprotected)},
	{name: oursLazy, serve: overHTTP(newOurs(true)), once: true, keys: keysIdem},
	{name: "fiber, Redis", serve: serveFiberRedis, once: true, redis: true},
}

// watchings are ways to watch it. The first is not to: how far it is from 1 is the noise.
var watchings = []subject{
	watching("idem, again", newOurs(false)),
	watching(oursWatched, newWatched(watched.Quiet)),
	watching("idem, watched at Debug", newWatched(watched.Verbose)),
	watching("idem, watched, 1 of 100 traced", newWatched(watched.Traced(0.01))),
	watching("idem, watched, all traced", newWatched(watched.Traced(1))),
}

func watching(name string, build func(context.Context, *pgxpool.Pool) (http.Handler, error)) subject {
	return subject{name: name, serve: overHTTP(build), once: true, keys: keysIdem, only: oneByOne, watched: true}
}

// group are the subjects that are compared: all peers, or the library alone and watched.
func group(watching bool) []subject {
	return slices.DeleteFunc(slices.Clone(subjects), func(s subject) bool { return s.watched != watching && s.name != ours })
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

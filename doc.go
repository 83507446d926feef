// Package idem makes repeats harmless: a second click, a client's retry, a
// redelivered message or a worker that dies half-way finds the outcome of the
// first try instead of making another.
//
// An intent has one outcome. A request's intent is named by its
// Idempotency-Key header within a scope and remembered in
// idem.idempotency_keys: the claim, the business rows and the stored answer
// commit in one PostgreSQL transaction, or none of them exists. The unique
// index on (scope, key) is the guarantee; locks and waiting only save work.
//
// What must happen once whoever runs it again is an effect, named by a key within
// a scope and remembered in idem.applied_effects, for ever. [Apply] runs one in a
// transaction, with which it commits. [Call] runs one that leaves the database, in
// a handler on a lease: the intention is committed before the call and the result
// after it, so that what lies between is known to be unknown, and is never taken
// for one of the others. Whether a call may be repeated depends on what the other
// side promises ([Keyed]).
//
// This package holds the nouns (key, scope, fingerprint, answer, effect), the
// handle every door shares ([Open]), the schema ([Migrate]), the invariants
// ([Check]), the sweeper ([Sweep]) and what a guarded handler may ask of its
// context ([Tx], [KeepWrites], [AfterCommit], [Reference]). The door for HTTP
// requests is package idemhttp.
package idem

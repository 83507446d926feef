// Package admin holds what an operator may ask of a database of Idem's, which keys
// it remembers, which tasks and which effects, what is stored of one and what its story
// is, and what an operator may change: each change is written down with actor and reason
// in the same transaction. One set of functions stands behind the commands of cmd/idem and
// whatever else shows the same.
//
// The functions read across scopes: who may call them is the caller's to
// decide. They are safe for concurrent use.
package admin

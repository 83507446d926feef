package ginidem

import (
	"maps"
	"reflect"
	"slices"

	"github.com/gin-gonic/gin"
)

// snapshot is c as it is now, with what runs may add to kept apart. The place in
// the chain is in it, which gin does not give out otherwise, and without which a
// chain could not be run again after a serialization failure.
func snapshot(c *gin.Context) *gin.Context {
	s := new(gin.Context)
	copyContext(s, c)
	return s
}

// restore makes c what it was.
func restore(c, s *gin.Context) { copyContext(c, s) }

func copyContext(to, from *gin.Context) {
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
	to.Keys = maps.Clone(from.Keys)
	to.Errors = slices.Clone(from.Errors)
	to.Accepted = slices.Clone(from.Accepted)
}

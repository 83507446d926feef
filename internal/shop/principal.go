package shop

import (
	"errors"
	"net/http"
	"strings"
)

// maxPrincipal is the longest name of a principal in bytes: an account's name.
const maxPrincipal = 64

var errUnauthenticated = errors.New("shop: no header, or Authorization: Bearer demo-NAME, is who may call; NAME is 1 to 64 letters, digits, dots, dashes or underscores")

// principal says who is calling, and so whose keys and orders a request is
// about. The demo has no logins: "Bearer demo-ann" is ann, no header is guest,
// anything else is nobody.
func principal(r *http.Request) (string, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		return "guest", nil
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	name, ok := strings.CutPrefix(token, "demo-")
	if len(headers) > 1 || !ok || !strings.EqualFold(scheme, "Bearer") || !validPrincipal(name) {
		return "", errUnauthenticated
	}
	return name, nil
}

func validPrincipal(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		digit := c >= '0' && c <= '9'
		if !letter && !digit && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= maxPrincipal
}

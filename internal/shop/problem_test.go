package shop

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// A problem's type leads to a heading that says what to do.
func TestProblems_areOnThePageThatTheyLeadTo(t *testing.T) {
	page, err := os.ReadFile("../../docs/shop.md")
	if err != nil {
		t.Fatal(err)
	}
	yes := map[bool]string{true: "yes", false: "no"}
	for code, p := range refusals {
		_, section, found := strings.Cut(string(page), "\n### "+code+"\n\n")
		section, _, _ = strings.Cut(section, "\n### ")
		begins := fmt.Sprintf("%d: %s. ", p.Status, p.Title)
		ends := fmt.Sprintf("Retryable: %s; safe with a new key: %s.\n", yes[p.Retryable], yes[p.SafeNewKey])
		if !found || !strings.HasPrefix(section, begins) || !strings.HasSuffix(section, ends) {
			t.Errorf("docs/shop.md has of %s\n%q, want\n%q ... %q", code, section, begins, ends)
		}
		if http.StatusText(p.Status) == "" {
			t.Errorf("%s has the status %d", code, p.Status)
		}
	}
	if n := strings.Count(string(page), "\n### "); n != len(refusals) {
		t.Errorf("the page has %d problems, the shop %d", n, len(refusals))
	}
}

package ops_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// rule is one alert of alerts.yaml.
type rule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

// page is the name that a rule's page and its tests have.
func (r rule) page() string {
	return strings.TrimSuffix(filepath.Base(r.Annotations["runbook_url"]), ".md")
}

// rules reads alerts.yaml.
func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) < 12 {
		t.Fatalf("got %+v, want one group of at least 12 rules", file.Groups)
	}
	return file.Groups[0].Rules
}

func TestRules_eachTellsHowBadItIsWhatItMeansAndWhereToRead(t *testing.T) {
	const pages = "https://github.com/idem-go/idem/blob/main/docs/runbooks/"
	for _, r := range rules(t) {
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity is %q; it must be critical or warning", r.Alert, s)
		}
		if len(r.Annotations["summary"]) < 30 || len(r.Annotations["description"]) < 60 {
			t.Errorf("%s: summary and description must say what is wrong and what it means", r.Alert)
		}
		if want := pages + kebab(r.Alert) + ".md"; r.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %q, want %q", r.Alert, r.Annotations["runbook_url"], want)
		}
	}
}

// kebab makes dead-letters of IdemDeadLetters.
func kebab(alert string) string {
	words := regexp.MustCompile(`[A-Z][a-z]+|[0-9]+s`).FindAllString(strings.TrimPrefix(alert, "Idem"), -1)
	return strings.ToLower(strings.Join(words, "-"))
}

func TestRules_areInOrder(t *testing.T) {
	out, err := exec.Command(tool(t, "promtool"), "check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// alertTest is what is looked at of a file in tests/.
type alertTest struct {
	Tests []struct {
		Name           string
		AlertRuleTests []struct {
			Alertname string `yaml:"alertname"`
			ExpAlerts []any  `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

// TestRules_behave runs promtool's tests of each rule, of which one has to fire at least,
// and another to be quiet.
func TestRules_behave(t *testing.T) {
	t.Parallel()
	for _, r := range rules(t) {
		t.Run(r.Alert, func(t *testing.T) {
			t.Parallel()
			name := filepath.Join("tests", r.page()+".yaml")
			var file alertTest
			if err := yaml.Unmarshal([]byte(read(t, name)), &file); err != nil {
				t.Fatal(err)
			}
			fires, quiet := 0, 0
			for _, test := range file.Tests {
				fired := false
				for _, a := range test.AlertRuleTests {
					if a.Alertname != r.Alert {
						t.Errorf("%s: %s is of another page", name, a.Alertname)
					}
					fired = fired || len(a.ExpAlerts) > 0
				}
				if fired {
					fires++
				} else if len(test.AlertRuleTests) > 0 {
					quiet++
				}
			}
			if fires == 0 || quiet == 0 {
				t.Errorf("%s: %d tests in which it fires and %d in which it is quiet; each needs one at least", name, fires, quiet)
			}
			if out, err := exec.Command(tool(t, "promtool"), "test", "rules", name).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestRules_noTestIsOfAnotherAlert(t *testing.T) {
	files, err := filepath.Glob("tests/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]bool{}
	for _, r := range rules(t) {
		pages[r.page()] = true
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".yaml"); !pages[name] {
			t.Errorf("%s tests an alert that is not there", file)
		}
	}
}

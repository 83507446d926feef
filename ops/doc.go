// Package ops has no code: beside it lie the alert rules for Prometheus (alerts.yaml, with
// promtool's tests of each in tests/) and the dashboard for Grafana (grafana/). What is
// tested here is that they, the pages for whoever is on call (docs/runbooks/) and the
// program's metrics belong together. It is a module of its own, so that what reads them
// is in nobody else's build.
//
// The tests need promtool and prometheus; scripts/test-ops gets them where they are
// missing and runs the tests.
package ops

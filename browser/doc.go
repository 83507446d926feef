// Package browser tests the demo's page in a real browser: a headless Chromium
// clicks its buttons, and the database says what came of it. It is a module of
// its own, so that what drives a browser is in nobody else's build.
//
// scripts/test-browser installs Chromium where it is missing and runs the tests.
package browser

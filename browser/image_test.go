package browser

import (
	"bytes"
	"flag"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/idem-go/idem/internal/shop"
)

var update = flag.Bool("update", false, "write the images that the README shows")

// images is where the README's are.
const images = "../docs/images"

// look is a way to see the page.
type look struct {
	name          string
	scheme        string
	width, height int64
	scale         float64
	inReadme      bool
}

var looks = []look{
	{"page.png", "light", 860, 900, 1.5, true},
	{"page-dark.png", "dark", 860, 900, 1.5, true},
	{"page-phone.png", "light", 360, 780, 2, false},
	{"page-phone-dark.png", "dark", 360, 780, 2, false},
}

// wear shows the page with a look.
func (b *tab) wear(l look) {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(l.width, l.height, chromedp.EmulateScale(l.scale)))
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}
	if _, err := chromedp.Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		b.t.Fatal(err)
	}
	b.waitFor(fmt.Sprintf("innerWidth === %d && matchMedia('(prefers-color-scheme: %s)').matches", l.width, l.scheme))
}

// TestImages_showThePageInEveryLook takes the README's images, with -update, and
// those that a person looks at, with -artifacts. Nothing may stick out of the
// narrowest screen.
func TestImages_showThePageInEveryLook(t *testing.T) {
	_, port := openShop(t, shop.Config{Faults: true})
	b := newTab(t)
	b.run(chromedp.Navigate(fmt.Sprintf("http://127.0.0.1:%d/", port)), chromedp.Click(chromedp.CSS("#bad-network")))
	for range 3 {
		b.clickBoth()
	}
	b.waitFor(fmt.Sprintf(counted, "guarded.orders", 3))
	b.waitFor(`Number(document.querySelector("[data-count='unguarded.doubles']").textContent) > 0`)
	for _, l := range looks {
		b.wear(l)
		b.waitFor(`[document.documentElement, ...document.querySelectorAll("button")].every((e) => e.scrollWidth <= e.clientWidth)`)
		shot, err := chromedp.Run(b, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(bytes.NewReader(shot))
		if err != nil || picture.Bounds().Dx() != int(float64(l.width)*l.scale) {
			t.Fatalf("%s: got %v, %v; want a PNG that is %v pixels wide", l.name, picture, err, float64(l.width)*l.scale)
		}
		dir := t.ArtifactDir()
		if *update && l.inReadme {
			dir = images
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, l.name), shot, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

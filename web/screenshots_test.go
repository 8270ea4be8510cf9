//go:build browser && screenshots

package web_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var pictures = flag.String("pictures", "", "the folder of the README's pictures")

// mostPicture is what a picture of the README may have.
const mostPicture = 150_000

// TestScreenshots makes the README's pictures: the quick start under load for long
// enough that there is something to see in the curves, and with a rotation under way.
func TestScreenshots(t *testing.T) {
	if *pictures == "" {
		t.Fatal("-pictures names no folder")
	}
	h := newHouse(t)
	p := h.look(1280, 760, false)
	h.load(14)
	top := onTerminal(t, exec.Command(built.Path(t, "roundhouse"), "top", "--admin", h.admin))
	p.goTo("#/charts")
	is[bool](p, `window.begun = performance.now(), true`)
	p.patience = 5 * time.Minute
	p.until(`performance.now() - window.begun > 150000`)
	p.goTo("#/now")
	resp, err := http.Post(h.admin+"/api/pools/chat/rotate", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	p.until(`document.body.innerText.includes('1 done') && document.querySelector('.cell-state')?.innerText === 'draining'`) // the second one's turn
	p.picture("console-light")
	top.draw(t, "top")
	p.dark()
	p.picture("console-dark")
}

// load keeps streams going until the test ends.
func (h *house) load(streams int) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	h.t.Cleanup(func() { cancel(); all.Wait() })
	for i := range streams {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				body := fmt.Sprintf(`{"model":"roundhouse-demo","stream":true,"max_tokens":%d,"ignore_eos":true,"messages":[{"role":"user","content":"Count from %d to 90 by 1."}]}`, 600+400*(i%4), i+n%9)
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.door+"/v1/chat/completions", bytes.NewReader([]byte(body)))
				if err != nil {
					h.t.Error(err)
					return
				}
				req.Header.Set("Content-Type", "application/json")
				if resp, err := http.DefaultClient.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body) // what breaks off is asked anew
					resp.Body.Close()
				}
			}
		})
	}
}

func (p *tab) dark() {
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

func (p *tab) picture(name string) {
	p.t.Helper()
	png := run(p, chromedp.CaptureScreenshot())
	if len(png) > mostPicture {
		p.t.Errorf("%s has %d bytes; a picture has at most %d", name, len(png), mostPicture)
	}
	if err := os.MkdirAll(*pictures, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*pictures, name+".png"), png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

//go:build browser

package web_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// shots keeps a picture of each page in each state, to be looked at.
var shots = flag.String("shots", "", "a folder for pictures of every page")

// browser is one Chromium for all tests of the process.
var browser context.Context

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		path, err := exec.LookPath("chromium")
		if err != nil {
			fmt.Fprintln(os.Stderr, "chromium is missing: test/prepare installs it")
			return 1
		}
		home, err := os.MkdirTemp("", "chromium")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(home)
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(home),
			chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
			chromedp.Flag("use-fake-ui-for-media-stream", true), chromedp.Flag("use-fake-device-for-media-stream", true),
			chromedp.Flag("hide-scrollbars", true), chromedp.Flag("force-color-profile", "srgb"))
		allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
		defer stop()
		var end context.CancelFunc
		browser, end = chromedp.NewContext(allocator)
		defer end()
		if err := chromedp.Do(browser); err != nil {
			fmt.Fprintln(os.Stderr, "chromium does not start:", err)
			return 1
		}
		defer built.Remove()
		return m.Run()
	}())
}

// tab is one page of the browser, and what it complained of.
type tab struct {
	context.Context
	t        *testing.T
	patience time.Duration // for what must come true
	mu       sync.Mutex
	faults   []string // exceptions, errors of the console, reports of the policy
	asked    []string // addresses that were asked for
}

// open opens a tab of a size, light or dark.
func open(t *testing.T, width, height int64, dark bool) *tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(browser)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	p := &tab{Context: ctx, t: t, patience: 15 * time.Second}
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		t.Fatal(err)
	}
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	call(p, network.Enable, network.EnableParams{})
	call(p, log.Enable, cdp.Empty{})
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 500})
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	t.Cleanup(func() { closeTab(); cancel() })
	return p
}

// hear notes what the page complains of, and whom it asks.
func (p *tab) hear(ev any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		p.faults = append(p.faults, fmt.Sprint(e.ExceptionDetails.Text, " ", e.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Source == log.EntrySourceSecurity {
			p.faults = append(p.faults, e.Entry.Text+" "+e.Entry.URL)
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			p.faults = append(p.faults, fmt.Sprint(e.Args))
		}
	case *network.EventRequestWillBeSent:
		p.asked = append(p.asked, e.Request.URL)
	}
}

func call[P, R any](p *tab, command cdp.Command[P, R], with P) R {
	p.t.Helper()
	r, err := chromedp.Call(p, command, with)
	if err != nil {
		p.t.Fatalf("%s: %v", command.Method, err)
	}
	return r
}

func run[T any](p *tab, a chromedp.Action[T]) T {
	p.t.Helper()
	v, err := chromedp.Run(p, a)
	if err != nil {
		p.t.Fatalf("%v; it complained of %v; the page has:\n%s", err, p.complaints(), p.text())
	}
	return v
}

func (p *tab) complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults
}

// text is what the page says.
func (p *tab) text() string {
	words, _ := chromedp.Run(p, chromedp.Evaluate[string](`(document.querySelector('dialog[open]')?.innerText ?? '') + (document.querySelector('.head')?.innerText ?? '') + (document.getElementById('main') ?? document.body)?.innerText.slice(0, 1500)`))
	return words
}

// is evaluates an expression.
func is[T any](p *tab, js string) T {
	p.t.Helper()
	return run(p, chromedp.Evaluate[T](js))
}

// until waits for an expression to hold.
func (p *tab) until(js string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p, p.patience)
	defer cancel()
	wait := fmt.Sprintf(`new Promise(done => { const look = () => (%s) ? done(true) : setTimeout(look, 15); look() })`, js)
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](wait, chromedp.EvalAwaitPromise)); err != nil {
		p.t.Fatalf("it never came true: %s: %v; it complained of %v; the page has:\n%s", js, err, p.complaints(), p.text())
	}
}

// load opens the console; goTo goes to one of its pages. Both wait for what the
// stream and the API bring.
func (p *tab) load(base, address string) {
	p.t.Helper()
	run(p, chromedp.Navigate(base+"/ui/"+address))
	p.settle(address)
}

func (p *tab) goTo(address string) {
	p.t.Helper()
	is[string](p, fmt.Sprintf(`location.hash = %q`, address))
	p.settle(address)
}

func (p *tab) settle(address string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector('.page')?.dataset.address === %q && !document.querySelector('.page').innerText.includes('Asking')`, address))
}

// clean holds that the page complained of nothing, asked nobody else, and needs no
// sideways scrolling.
func (p *tab) clean(base string) {
	p.t.Helper()
	for _, c := range p.complaints() {
		p.t.Errorf("%s", c)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, url := range p.asked {
		if !strings.HasPrefix(url, base+"/") && url != "about:blank" && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:"+base) {
			p.t.Errorf("it asked %s", url)
		}
	}
}

// shoot keeps a picture where pictures are wanted.
func (p *tab) shoot(name string) {
	p.t.Helper()
	if *shots == "" {
		return
	}
	png := run(p, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

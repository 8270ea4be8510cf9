//go:build browser

package web_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// audit has axe-core look at what is shown.
func (p *tab) audit(what string) {
	p.t.Helper()
	if !is[bool](p, `'axe' in window`) {
		script, err := os.ReadFile("../build/clients/node/node_modules/axe-core/axe.min.js")
		if err != nil {
			p.t.Fatalf("%v: test/prepare brings it in", err)
		}
		is[bool](p, string(script)+";true")
	}
	found := run(p, chromedp.Evaluate[[]string](`axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations']})
		.then(r => r.violations.flatMap(v => v.nodes.slice(0, 3).map(n => v.id + ': ' + n.html.slice(0, 160) + ': ' + n.failureSummary)))`, chromedp.EvalAwaitPromise))
	for _, f := range found {
		p.t.Errorf("%s: %s", what, f)
	}
}

// TestAxe has audited what TestPages does not show: a dialog, what is stale, and the page
// before anybody has signed in.
func TestAxe(t *testing.T) {
	f := newFake(t, busyScene())
	p := open(t, 1280, 720, false)
	p.load(f.URL, "#/workers/chat/1")
	p.press("Stop")
	p.audit("a dialog")
	run(p, chromedp.KeyEvent(kb.Escape))
	f.hush(true)
	p.until(`document.querySelector('.stale')`)
	p.audit("stale")
	f.token = "secret"
	f.end()
	p.until(`document.querySelector('.sign-in')`)
	p.audit("sign in")
}

// press presses the button of a name by its own handler, wherever it stands.
func (p *tab) press(name string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`[...document.querySelectorAll('button')].some(b => b.innerText.trim() === %q && !b.disabled)`, name))
	is[bool](p, fmt.Sprintf(`[...document.querySelectorAll('button')].filter(b => b.innerText.trim() === %q && !b.disabled).at(-1).click(), true`, name))
}

// TestKeyboard walks every page with the Tab key: whatever takes the focus is reached,
// in the order of the page, with a ring around it, and the walk comes to its end.
func TestKeyboard(t *testing.T) {
	p := open(t, 1280, 720, false)
	p.load(newFake(t, busyScene()).URL, "#/now")
	for name, address := range pages {
		p.goTo(address)
		all := is[int](p, `(() => { document.activeElement?.blur(); window.scrollTo(0, 0); window.seen = new Set();
			const can = [...document.querySelectorAll('a[href], button:not(:disabled), input:not(:disabled), select, textarea, summary, [tabindex="0"]')].filter(e => e.checkVisibility({contentVisibilityAuto: true}) && e.tabIndex >= 0 && !e.closest('details:not([open]) > :not(summary)'));
			window.can = new Set(can); document.querySelector('.skip').focus(); window.seen.add(document.activeElement); return can.length })()`)
		for range all + 20 {
			run(p, chromedp.KeyEvent(kb.Tab))
			if is[bool](p, `document.activeElement === document.body`) {
				break // beyond the last one
			}
			if bare := is[string](p, `(() => { const e = document.activeElement; window.seen.add(e);
				const s = getComputedStyle(e); return s.outlineStyle === 'none' || parseFloat(s.outlineWidth) < 2 ? e.outerHTML.slice(0, 120) : '' })()`); bare != "" {
				t.Errorf("%s: no ring around %s", name, bare)
			}
		}
		if missed := is[[]string](p, `[...window.can].filter(e => e.isConnected && !window.seen.has(e)).map(e => e.outerHTML.slice(0, 120))`); len(missed) > 0 {
			t.Errorf("%s: the Tab key does not reach %d of %d: %s", name, len(missed), all, strings.Join(missed, "\n"))
		}
	}
}

// TestKeys drains a worker without a pointer: to the page, to the row, to its page,
// the button, the second press; and the focus is back where it was.
func TestKeys(t *testing.T) {
	f := newFake(t, quietScene())
	p := open(t, 1280, 720, false)
	p.load(f.URL, "#/now")
	keys := func(k string) {
		t.Helper()
		run(p, chromedp.KeyEvent(k))
	}
	keys("g")
	keys("w")
	p.settle("#/workers")
	keys("j")
	p.until(`document.activeElement.innerText === 'chat/1'`)
	keys("x")
	p.until(`document.querySelector('tr.ticked')`)
	keys("j")
	keys("k")
	keys(kb.Enter)
	p.settle("#/workers/chat/1")
	keys(".")
	p.until(`document.activeElement.innerText === 'Drain'`)
	keys(kb.Enter)
	p.until(`document.querySelector('dialog[open]')`)
	keys(kb.Escape)
	p.until(`!document.querySelector('dialog[open]') && document.activeElement.innerText === 'Drain'`)
	if len(f.commands) != 0 {
		t.Errorf("leaving the dialog has asked for %v", f.commands)
	}
	keys("?")
	p.until(`document.querySelector('dialog[open]')?.innerText.includes('filter')`)
}

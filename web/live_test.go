//go:build browser

package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestStale has the supervisor fall silent, as one that is stopped: within three
// seconds everything is called old and nothing can be commanded, and when it speaks
// again all is well without a reload.
func TestStale(t *testing.T) {
	f := newFake(t, busyScene())
	p := open(t, 1280, 720, false)
	p.load(f.URL, "#/workers/chat/1")
	// The first thing said of it is kept: how old the data was by then.
	is[bool](p, `new MutationObserver(() => { window.first ??= document.querySelector('.notice.bad')?.innerText }).observe(document.getElementById('app'), {childList: true, subtree: true}), true`)
	f.hush(true)
	p.until(`window.first`)
	if said := is[string](p, `window.first`); !strings.Contains(said, "What you see is 2 s old") && !strings.Contains(said, "What you see is 3 s old") {
		t.Errorf("it is called stale late: %s", said)
	}
	if got := is[string](p, `document.querySelector('.verdict').dataset.level + [...document.querySelectorAll('.page .does button')].filter(b => !b.disabled).length`); got != "off0" {
		t.Errorf("verdict and buttons that can be pressed: %s; want off and none", got)
	}
	f.hush(false)
	p.until(`!document.querySelector('.stale') && document.querySelector('.verdict').dataset.level === 'changing'`)
	f.end()
	p.until(`!document.querySelector('.stale') && document.querySelector('.verdict').dataset.level === 'changing'`)
}

// TestRecovers takes the whole address away and brings it back with other state.
func TestRecovers(t *testing.T) {
	f := newFake(t, busyScene())
	p := open(t, 1280, 720, false)
	p.load(f.URL, "#/now")
	f.show(faultyScene())
	p.until(`document.querySelector('.verdict').dataset.level === 'down' && document.body.innerText.includes('halted at chat/4')`)
	f.show(quietScene())
	p.until(`document.querySelector('.verdict').dataset.level === 'well' && document.body.innerText.includes('curl -sN')`)
}

// TestCommand: the first press says what will happen, with figures; the second asks
// for it; it is not called done before the supervisor has told of it; a refusal is
// shown in the supervisor's words.
func TestCommand(t *testing.T) {
	f := newFake(t, busyScene())
	p := open(t, 1280, 720, false)
	p.load(f.URL, "#/workers/chat/1")
	p.press("Stop")
	p.until(`document.querySelector('dialog[open]').innerText.includes('9 requests')`)
	if !is[bool](p, `document.querySelector('[data-confirm]').disabled`) {
		t.Error("a worker is stopped without its name")
	}
	is[bool](p, `document.querySelector('dialog input').focus(), true`)
	run(p, chromedp.KeyEvent("chat/1"))
	p.until(`!document.querySelector('[data-confirm]').disabled`)
	is[bool](p, `document.querySelector('[data-confirm]').click(), true`)
	p.until(`document.querySelector('[data-confirm]').getAttribute('aria-busy') === 'true'`)
	for !f.asked("POST /api/workers/chat/1/stop {}") {
		p.until(`document.querySelector('dialog[open]')`) // it waits for the event, whatever was answered
	}
	s := busyScene()
	s.events = append(s.events, event(6, 0, "chat/1", "stop", `operator "console"`, "asked for"))
	f.show(s)
	p.until(`!document.querySelector('dialog[open]')`)

	p.press("Rotate")
	p.until(`document.querySelector('dialog[open]')?.innerText.includes('not now: chat/1 has its turn')`)
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte(`{"error":{"message":"a rotation of chat runs already","code":409}}`))
	})
	is[bool](p, `document.querySelector('[data-confirm]').click(), true`)
	p.until(`document.querySelector('dialog [role=alert]')?.innerText === 'a rotation of chat runs already'`)
}

// TestReadOnly: who may only look sees every button, and why it is dead.
func TestReadOnly(t *testing.T) {
	s := busyScene()
	s.rights = "read"
	p := open(t, 1280, 720, false)
	p.load(newFake(t, s).URL, "#/workers/chat/1")
	if got := is[string](p, `[...document.querySelectorAll('.page .does button')].map(b => b.disabled && b.title).join('|')`); strings.Count(got, "only reads") < 3 || strings.Contains(got, "false") {
		t.Errorf("buttons say %s", got)
	}
}

// TestSignIn asks for the token once, keeps it for the tab, and sends it nowhere
// but in a header.
func TestSignIn(t *testing.T) {
	f := newFake(t, quietScene())
	f.token = "s3cret"
	p := open(t, 1280, 720, false)
	run(p, chromedp.Navigate(f.URL+"/ui/"))
	p.until(`document.querySelector('.sign-in [role=alert]')?.innerText.includes('admin.token')`)
	is[bool](p, `document.querySelector('input[type=password]').focus(), true`)
	run(p, chromedp.KeyEvent("s3cret\r"))
	p.until(`document.querySelector('.verdict').dataset.level === 'well'`)
	run(p, chromedp.Reload())
	p.until(`document.querySelector('.verdict')?.dataset.level === 'well'`)
	for _, url := range p.asked {
		if strings.Contains(url, "s3cret") {
			t.Errorf("the token stands in an address: %s", url)
		}
	}
	if is[bool](p, `document.cookie !== ''`) {
		t.Error("there is a cookie")
	}
}

// TestCrowd: of a thousand workers a table shows a hundred at first, finds any by
// its name, and keeps its order while somebody is in it.
func TestCrowd(t *testing.T) {
	p := open(t, 1280, 720, false)
	p.load(newFake(t, crowdScene()).URL, "#/workers")
	if got := is[int](p, `document.querySelectorAll('tbody tr').length`); got != 100 {
		t.Errorf("%d rows are shown; want 100", got)
	}
	if got := is[string](p, `document.querySelector('tbody tr').dataset.row`); got != "chat/8" {
		t.Errorf("the first row is %s; want one that is ejected", got)
	}
	run(p, chromedp.KeyEvent("/"))
	p.until(`document.activeElement.matches('[data-filter]')`)
	is[bool](p, `document.activeElement.select(), true`)
	run(p, chromedp.KeyEvent("chat/777"))
	p.until(`document.querySelectorAll('tbody tr').length === 1 && document.querySelector('tbody tr').dataset.row === 'chat/777'`)
}

// TestPaint tells when the first words stood on the screen; what it may take is
// judged on a quiet machine, not here.
func TestPaint(t *testing.T) {
	p := open(t, 1280, 720, false)
	p.load(newFake(t, busyScene()).URL, "#/now")
	p.until(`performance.getEntriesByName('first-contentful-paint').length > 0`)
	first := is[float64](p, `performance.getEntriesByName('first-contentful-paint')[0].startTime`)
	if first <= 0 {
		t.Fatal("nothing was painted")
	}
	t.Logf("first paint after %.0f ms", first)
}

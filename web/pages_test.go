//go:build browser

package web_test

import (
	"fmt"
	"strings"
	"testing"
)

// pages are the addresses of every page of the console.
var pages = map[string]string{
	"now": "#/now", "workers": "#/workers", "worker": "#/workers/chat/1", "flight": "#/requests", "waiting": "#/requests?tab=waiting", "ended": "#/requests?tab=ended",
	"explain": "#/requests/explain/old-0001", "rotations": "#/rotations", "events": "#/events", "charts": "#/charts", "try": "#/try", "health": "#/health", "setup": "#/setup",
}

// audited are the scenes that axe-core looks at, by the width at which it does: a good
// and a bad state, light and dark.
var audited = map[string]int64{"busy": 1280, "faulty": 320, "empty": 320}

// TestPages shows every page in every state, wide and on a phone, light and dark:
// nothing throws, nothing breaks the policy, nobody else is asked, nothing has to be
// scrolled sideways, and axe-core finds nothing.
func TestPages(t *testing.T) {
	for _, s := range scenes() {
		t.Run(strings.ReplaceAll(s.name, " ", "_"), func(t *testing.T) {
			t.Parallel() // each page waits for the browser most of its time
			f := newFake(t, s)
			for i, size := range []struct {
				width, height int64
				dark          bool
			}{{1280, 720, false}, {320, 700, true}} {
				p := open(t, size.width, size.height, size.dark)
				p.load(f.URL, "#/now")
				for name, address := range pages {
					p.goTo(address)
					if got := is[int](p, `document.documentElement.scrollWidth`); got > int(size.width) {
						wide := is[[]string](p, fmt.Sprintf(`[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > %d && !e.closest('.scroll')).map(e => e.getAttribute('class') || e.tagName).slice(0, 5)`, size.width))
						t.Errorf("%s at %d px is %d px wide: %v", name, size.width, got, wide)
					}
					if owned := is[bool](p, `document.title.includes('owned') || document.querySelectorAll('img, #app script').length > 0`); owned {
						t.Errorf("%s: text has become markup", name)
					}
					if audited[s.name] == size.width {
						p.audit(s.name + ": " + name)
					}
					p.shoot(fmt.Sprintf("%s-%s-%d", s.name, name, i))
				}
				p.clean(f.URL)
			}
		})
	}
}

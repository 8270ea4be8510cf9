//go:build browser

package web_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"roundhouse/test/ports"
	"roundhouse/test/program"
)

// built are the programs that the tests run.
//
// Pictures show their version, which the Makefile hands over as it stands in git.
var built = program.Set{Flags: []string{"-ldflags", "-X roundhouse/worker/api.Version=" + cmp.Or(os.Getenv("VERSION"), "v0-test")}}

// house is a running `roundhouse up` of two workers on the demonstration model.
type house struct {
	t           *testing.T
	config      string
	door, admin string // http://…
	cmd         *exec.Cmd
	out         bytes.Buffer
}

func newHouse(t *testing.T) *house {
	t.Helper()
	dir := t.TempDir()
	door, admin := ports.Address(t), ports.Address(t)
	h := &house{t: t, config: filepath.Join(dir, "roundhouse.hcl"), door: "http://" + door, admin: "http://" + admin}
	text := fmt.Sprintf(`state_dir = %q
door {
  listen = %q
}
admin {
  listen = %q
}
pool "chat" {
  workers = 2
  devices = "cpu"
  engine {
    served_model_name = ["roundhouse-demo"]
  }
  rotation {
    drain_timeout = "60s"
    stop_grace    = "10s"
  }
}
`, filepath.Join(dir, "state"), door, admin)
	if err := os.WriteFile(h.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	t.Cleanup(func() {
		_ = h.cmd.Process.Signal(syscall.SIGTERM)
		_ = h.cmd.Wait()
		if t.Failed() {
			t.Logf("the program printed:\n%s", h.out.String())
		}
	})
	return h
}

func (h *house) start() {
	h.t.Helper()
	h.cmd = exec.Command(built.Path(h.t, "roundhouse"), "up", "-c", h.config)
	h.cmd.Stdout, h.cmd.Stderr = &h.out, &h.out
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
}

// state is what the admin API says of a worker.
func (h *house) state(id string) string {
	resp, err := http.Get(h.admin + "/api/workers")
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	var all struct {
		Workers []struct{ ID, State string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		return err.Error()
	}
	for _, w := range all.Workers {
		if w.ID == id {
			return w.State
		}
	}
	return "there is none"
}

// look opens the console in a tab, as soon as it can be had.
func (h *house) look(width, height int64, dark bool) *tab {
	h.t.Helper()
	late := time.After(time.Minute)
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		if resp, err := http.Get(h.admin + "/ui/"); err == nil {
			resp.Body.Close()
			break
		}
		select {
		case <-tick.C:
		case <-late:
			h.t.Fatalf("the admin address does not answer:\n%s", h.out.String())
		}
	}
	p := open(h.t, width, height, dark)
	p.load(h.admin, "#/now")
	p.until(`document.querySelector('.verdict').dataset.level === 'well'`)
	if got := is[string](p, `document.querySelector('.nav footer').textContent`); strings.Contains(got, "unknown") {
		h.t.Errorf("the page does not know its version: %s", got)
	}
	return p
}

// confirm presses a button and then the one that says the same in its dialog.
func (p *tab) confirm(name string) {
	p.t.Helper()
	p.press(name)
	p.until(`document.querySelector('dialog[open] [data-confirm]:not(:disabled)')`)
	is[bool](p, `document.querySelector('[data-confirm]').click(), true`)
	p.until(`!document.querySelector('dialog[open]')`)
}

// TestProgram has clicks do what they say: the same as the commands', told by the same
// events, and nothing before the program has told it.
func TestProgram(t *testing.T) {
	h := newHouse(t)
	p := h.look(1280, 720, false)

	p.goTo("#/workers/chat/1")
	p.confirm("Drain")
	p.until(`document.querySelector('.page-head .badge').innerText.trim() === 'drained'`)
	if got := h.state("chat/1"); got != "drained" {
		t.Errorf("chat/1 is %s after its drain", got)
	}
	p.confirm("Undrain")
	p.until(`document.querySelector('.page-head .badge').innerText.trim() === 'ready'`)

	p.goTo("#/try")
	p.until(`!document.querySelector('.try button.main').disabled`)
	p.until(`!document.querySelector('[data-attach]')`) // the workers say that they take text alone
	is[bool](p, `document.querySelector('[data-prompt]').focus(), true`)
	run(p, chromedp.KeyEvent("Count from 1 to 20 by 1.\r"))
	p.until(`document.querySelector('[data-phase=ended]') && document.querySelector('.foot').innerText.includes('not resumed')`)
	if got := is[string](p, `document.querySelector('.said').innerText`); !strings.Contains(got, "18 19 20") || !strings.Contains(got, "chat/") {
		t.Errorf("the answer is %s", got)
	}
	p.press("Many at once")
	p.press("Send 16 at once")
	p.until(`document.querySelectorAll('.squares .is-ended').length === 16 && document.querySelectorAll('.page tbody tr').length === 2`)
	p.press("Side by side")
	p.press("Send to each")
	p.until(`document.querySelectorAll('.beside [data-phase=ended]').length === 2`)

	p.goTo("#/requests?tab=ended")
	p.until(`document.querySelectorAll('tbody tr').length >= 19`)
	is[bool](p, `document.querySelector('tbody a').click(), true`)
	p.until(`document.querySelector('.candidates') && document.body.innerText.includes('What came of it')`)

	p.goTo("#/rotations")
	p.confirm("Rotate")
	p.until(`document.querySelector('.panel .badge')?.innerText.trim() === 'done'`)

	p.goTo("#/workers?pool=chat")
	p.press("Scale chat")
	is[bool](p, `document.querySelector('dialog input[type=number]').select(), true`)
	run(p, chromedp.KeyEvent("3"))
	p.until(`document.querySelector('dialog').innerText.includes('2 → 3')`)
	is[bool](p, `document.querySelector('[data-confirm]').click(), true`)
	p.until(`!document.querySelector('dialog[open]') && document.querySelectorAll('tbody tr').length === 3`)
	p.goTo("#/events")
	p.until(`['drain', 'undrain', 'rotate', 'scale'].every(k => [...document.querySelectorAll('.event-kind')].some(e => e.innerText === k))`)
	p.clean(h.admin)
}

// TestProgramDies kills the supervisor under the console: what is shown is called old,
// and when it is started again all is well without a reload.
func TestProgramDies(t *testing.T) {
	h := newHouse(t)
	p := h.look(1280, 720, true)
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
	p.until(`document.querySelector('.notice.bad')?.innerText.includes('does not answer') && document.querySelector('.verdict').dataset.level === 'off'`)
	h.start()
	p.until(`document.querySelector('.verdict').dataset.level === 'well' && !document.querySelector('.notice')`)
}

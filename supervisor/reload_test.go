package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"roundhouse/balancer/control"
	"roundhouse/configs"
	"roundhouse/supervisor/driver"
)

// What takes long in a reload, starting plugins and opening drivers, holds nobody
// up: the loop answers meanwhile, and restarts a worker that falls.
func TestReloadDoesNotBlock(t *testing.T) {
	b := newBench(t, 1, nil)
	slow, entered := make(chan struct{}), make(chan struct{}, 2)
	b.runWith(func(o *Options) {
		o.Changing = func(*configs.Config) error {
			entered <- struct{}{}
			<-slow
			return nil
		}
		o.OpenDriver = func(string, string) (driver.Driver, error) {
			entered <- struct{}{}
			<-slow
			return nil, errors.New("it has no hands")
		}
	})
	b.cfg.Pools = append(b.cfg.Pools, configs.Pool{Name: "other", Driver: "plugin:robot", Workers: counted(1), Rotation: b.cfg.Pools[0].Rotation})
	b.write()
	done := make(chan string, 1)
	go func() {
		_, text := b.post("/api/reload", "")
		done <- text
	}()
	<-entered
	victim := b.workers()[0]
	if err := syscall.Kill(victim.Place.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.until("the loop goes on", func() bool {
		w := b.workers()[0]
		return w.State == "ready" && w.Generation == victim.Generation+1
	})
	close(slow)
	if text := <-done; !strings.Contains(text, `pool \"other\"`) || !strings.Contains(text, "no hands") {
		t.Errorf("the answer: %s", text)
	}
	if w := b.workers(); len(w) != 1 {
		t.Errorf("a reload that was refused has changed something: %+v", w)
	}
}

// A secret that has changed is a change, by its name alone.
func TestChanged(t *testing.T) {
	base := func() *configs.Config {
		return &configs.Config{
			Door:  configs.Door{Keys: []configs.Key{{Name: "a", Weight: 1}}},
			Pools: []configs.Pool{{Name: "chat", Workers: []configs.Worker{{Name: "1", APIKey: "old-secret"}}, Engine: configs.Engine{Environment: map[string]string{"HF_TOKEN": "old-secret", "A": "1"}}}},
		}
	}
	f := func(change func(*configs.Config), want ...string) {
		t.Helper()
		next := base()
		change(next)
		got := Changes(base(), next)
		if !slices.Equal(got, want) {
			t.Errorf("got %v; want %v", got, want)
		}
		if text, _ := json.Marshal(got); strings.Contains(string(text), "secret") {
			t.Errorf("a secret is shown: %s", text)
		}
	}
	f(func(*configs.Config) {})
	f(func(c *configs.Config) { c.Pools[0].Workers[0].APIKey = "new-secret" }, "pools.chat.workers.1.api_key")
	f(func(c *configs.Config) { c.Pools[0].Engine.Environment["HF_TOKEN"] = "new-secret" }, "pools.chat.engine.environment.HF_TOKEN")
	f(func(c *configs.Config) { c.Admin.Token = "secret" }, "admin.token")
	f(func(c *configs.Config) { c.Door.Keys[0].Weight = 2 }, "door.keys.a.weight")
	f(func(c *configs.Config) { c.Pools[0].Canary = &configs.Canary{} }, "pools.chat.canary")
	f(func(c *configs.Config) { c.Pools = nil }, "pools.chat")
	f(func(c *configs.Config) { c.Pools[0].Engine.Args = []string{"--x"} }, "pools.chat.engine.args")
}

// The admin API's three doors, one behind the other: Host, Origin, token. No verb
// and no path gets past them.
func TestAdminGuard(t *testing.T) { synctest.Test(t, testAdminGuard) } // whoever shows a wrong token waits

func testAdminGuard(t *testing.T) {
	f := func(listen, token, host, origin, authorization string, want int) {
		t.Helper()
		handler := control.Guard(configs.Admin{Listen: listen, Token: configs.Secret(token)}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
		for _, verb := range []string{"GET", "POST", "DELETE"} {
			r := httptest.NewRequestWithContext(context.Background(), verb, "/api/pools/chat/rotate", strings.NewReader("{}"))
			r.Host = host
			if origin != "" {
				r.Header.Set("Origin", origin)
				r.Header.Set("X-Roundhouse-Operator", "page")
			}
			if authorization != "" {
				r.Header.Set("Authorization", authorization)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%s, listen %s, token %q, Host %q, Origin %q, Authorization %q: %d; want %d", verb, listen, token, host, origin, authorization, w.Code, want)
			}
			if text, _ := io.ReadAll(w.Body); token != "" && strings.Contains(string(text), token) {
				t.Errorf("the answer tells the token: %s", text)
			}
		}
	}
	const in, here = http.StatusTeapot, "127.0.0.1:8001"
	f(here, "", here, "", "", in)
	f(here, "s3cret", here, "", "", 401)
	f(here, "s3cret", here, "", "Bearer s3cre", 401)
	f(here, "s3cret", here, "", "Bearer s3cret2", 401)
	f(here, "s3cret", here, "", "bearer s3cret", 401)
	f(here, "s3cret", here, "", "Basic s3cret", 401)
	f(here, "s3cret", here, "", "Bearer s3cret", in)
	f(here, "s3cret", "attacker.example", "", "Bearer s3cret", 403) // a name that points here
	f(here, "s3cret", here, "http://attacker.example", "Bearer s3cret", 403)
	f(here, "s3cret", here, "null", "Bearer s3cret", 403)
	f(here, "s3cret", here, "http://127.0.0.1:8001", "Bearer s3cret", in)
	f(here, "s3cret", here, "http://127.0.0.1:9999", "Bearer s3cret", 403)
	f(here, "", "localhost:8001", "", "", in)
	f(here, "", "[::1]:8001", "", "", in)
	f("admin.example:8001", "zebra", "ADMIN.example:8001", "", "Bearer zebra", in)
	f("unix:///run/x.sock", "", "anything", "", "", in) // its owner alone can open it
	f("unix:///run/x.sock", "zebra", "anything", "", "", 401)
	if _, err := control.ListenAdmin(configs.Admin{Listen: "0.0.0.0:0"}); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("an admin API for everybody without a token: %v", err)
	}
}

// The read-only token reads and does nothing else; without it nobody gets in by an empty
// one.
func TestReadToken(t *testing.T) { synctest.Test(t, testReadToken) }

func testReadToken(t *testing.T) {
	f := func(read, authorization, method string, want int) {
		t.Helper()
		handler := control.Guard(configs.Admin{Listen: "127.0.0.1:8001", Token: "full", ReadToken: configs.Secret(read)},
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
		r := httptest.NewRequestWithContext(t.Context(), method, "/api/workers/chat/1/stop", strings.NewReader("{}"))
		r.Host = "127.0.0.1:8001"
		r.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("read token %q, %q, %s: %d; want %d", read, authorization, method, w.Code, want)
		}
	}
	for _, method := range []string{"GET", "HEAD"} {
		f("look", "Bearer look", method, http.StatusTeapot)
		f("look", "Bearer full", method, http.StatusTeapot)
	}
	for _, method := range []string{"POST", "DELETE", "PUT", "PATCH"} {
		f("look", "Bearer look", method, http.StatusForbidden)
		f("look", "Bearer full", method, http.StatusTeapot)
	}
	f("look", "Bearer loo", "GET", http.StatusUnauthorized)
	f("", "Bearer ", "GET", http.StatusUnauthorized)
}

// The door's log is there for whoever asks.
func TestDoorLogs(t *testing.T) {
	b := newBench(t, 1, nil)
	b.run()
	res, err := client.Get(b.api + "/api/door/logs?tail=5")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%d %q %v", res.StatusCode, text, err)
	}
}

// What differs is shown with its values and without secrets, beside the reason why the
// file cannot be taken.
func TestCompareFile(t *testing.T) {
	base := func() *configs.Config {
		return &configs.Config{Pools: []configs.Pool{{Name: "chat.de", Workers: []configs.Worker{{Name: "1", APIKey: "old-secret"}},
			Engine: configs.Engine{Args: []string{"--api-key", "old-secret", "--x"}, Environment: map[string]string{"A": "<1>"}}}}}
	}
	next := base()
	p := &next.Pools[0]
	p.Workers = []configs.Worker{{Name: "1", APIKey: "new-secret"}, {Name: "2"}}
	p.Engine.Args, p.Engine.Environment = []string{"--api-key", "new-secret", "--y"}, map[string]string{"A": "<2>"}
	got := CompareFile(base(), "a.hcl", next, errors.New("door.listen: it stays"))
	text, err := json.Marshal(got)
	if err != nil || strings.Contains(string(text), "-secret") {
		t.Errorf("%v; a secret is shown: %s", err, text)
	}
	if got.Error == nil || *got.Error != "door.listen: it stays" {
		t.Errorf("the reason is %v", got.Error)
	}
	value := func(s *string) string {
		if s == nil {
			return "none"
		}
		return *s
	}
	shown := map[string][2]string{}
	for _, c := range got.Changes {
		shown[c.Setting] = [2]string{value(c.Runs), value(c.File)}
	}
	for setting, want := range map[string][2]string{
		"pools.chat.de.engine.args":          {`["--api-key","***","--x"]`, `["--api-key","***","--y"]`},
		"pools.chat.de.engine.environment.A": {`"<1>"`, `"<2>"`}, "pools.chat.de.workers.1.api_key": {`"***"`, `"***"`},
	} {
		if shown[setting] != want {
			t.Errorf("%s: %q; want %q", setting, shown[setting], want)
		}
	}
	if w := shown["pools.chat.de.workers.2"]; w[0] != "none" || !strings.Contains(w[1], `"2"`) || len(shown) != 4 {
		t.Errorf("all that differs: %q", shown)
	}
	if broken := CompareFile(base(), "a.hcl", nil, errors.New("a.hcl:3: what is this?")); broken.Error == nil || len(broken.Changes) != 0 {
		t.Errorf("a file that cannot be read: %+v", broken)
	}
}

// The difference is told of what lies on disk now, and nothing of it is put in force.
func TestFileChangesServed(t *testing.T) {
	b := newBench(t, 1, nil)
	b.run()
	changes := func() (c FileChanges) {
		t.Helper()
		res, err := client.Get(b.api + "/api/config/changes")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&c); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v", res.Status, err)
		}
		return c
	}
	if c := changes(); len(c.Changes) != 0 || c.Error != nil {
		t.Errorf("nothing was changed, and it shows %+v", c)
	}
	b.cfg.Pools[0].Workers = counted(2)
	b.write()
	for range 2 {
		if c := changes(); len(c.Changes) != 1 || c.Changes[0].Setting != "pools.chat.workers.2" {
			t.Errorf("a worker more in the file shows %+v", c)
		}
	}
	if n := len(b.workers()); n != 1 {
		t.Errorf("to look at the file has made %d workers of one", n)
	}
}

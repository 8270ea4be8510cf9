package balancer_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// TestSticky keeps what belongs together at one target: by the session, the
// user, or what the prompt begins with.
func TestSticky(t *testing.T) {
	a, b := sim.New(sim.Options{Own: true, Words: 1, Model: "m-a", Salt: "a"}), sim.New(sim.Options{Own: true, Words: 1, Model: "m-b", Salt: "b"})
	r := newRig(t, []*sim.Worker{a, b}, func(s *control.WorkerSet) {
		splitPool(s)
		for _, by := range []string{"session", "user", "prefix", "none"} {
			s.Routes = append(s.Routes, configs.Route{Name: by, Sticky: by, Targets: []configs.Target{{Model: "m-a", Weight: 1}, {Model: "m-b", Weight: 1}}})
		}
	})
	ask := func(model, session, user, prompt string) string {
		_, got := r.post("/v1/chat/completions", fmt.Sprintf(`{"model":%q,"user":%q,"messages":[{"role":"user","content":%q}]}`, model, user, prompt), "x-session-id", session)
		if strings.Contains(got, "a0") {
			return "a"
		}
		return "b"
	}
	// Each is asked 20 times over with one thing the same and the rest changing.
	for by, one := range map[string]func(i, k int) string{
		"session": func(i, k int) string { return ask("session", fmt.Sprint("s", i), fmt.Sprint(k), fmt.Sprint(k)) },
		"user":    func(i, k int) string { return ask("user", fmt.Sprint("s", k), fmt.Sprint("u", i), fmt.Sprint(k)) },
		"prefix": func(i, k int) string {
			return ask("prefix", fmt.Sprint("s", k), fmt.Sprint("u", k), strings.Repeat(fmt.Sprint("story ", i, " "), 400)+fmt.Sprint(k))
		},
	} {
		seen := map[string]int{}
		for i := range 12 {
			first := one(i, 0)
			seen[first]++
			for k := range 3 {
				if got := one(i, k+1); got != first {
					t.Errorf("by %s: %d went to %s and %s", by, i, first, got)
				}
			}
		}
		if len(seen) != 2 {
			t.Errorf("by %s: all went to %v", by, seen)
		}
	}
	turns := map[string]int{}
	for range 10 {
		turns[ask("none", "s", "u", "p")]++
	}
	if turns["a"] != 5 {
		t.Errorf("by nothing: %v", turns)
	}
}

// TestRefusals refuses what is well framed and still not to be served.
func TestRefusals(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 1})
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Door.Keys = []configs.Key{{Name: "a", SHA256: []string{hashOf("good")}, Models: []string{"*"}}}
	})
	f := func(name, path, body string, want int, header ...string) {
		t.Helper()
		resp, got := r.post(path, body, append([]string{"Authorization", "Bearer good"}, header...)...)
		if resp.StatusCode != want || want >= 400 && !strings.Contains(got, `"error":{"message":`) {
			t.Errorf("%s: got %d %s; want %d", name, resp.StatusCode, got, want)
		}
	}
	const chat = "/v1/chat/completions"
	f("good", chat, okBody, 200)
	f("compressed", chat, okBody, 415, "Content-Encoding", "gzip")
	f("another type", chat, okBody, 400, "Content-Type", "text/plain")
	f("another character set", chat, okBody, 400, "Content-Type", "application/json; charset=utf-16")
	f("a key of 10 KiB", chat, okBody, 401, "Authorization", "Bearer "+strings.Repeat("k", 10<<10))
	f("a key that asks a database", chat, okBody, 401, "Authorization", "Bearer ' OR 1=1 --")
	f("a key in the query", chat+"?api_key=good", okBody, 401, "Authorization", "")
	f("a priority that is none", chat, okBody, 400, "X-Roundhouse-Priority", "first")
	f("100 000 keys", chat, `{"model":"sim","messages":[{"role":"user","content":"x"}],"x":{`+strings.Repeat(`"a":1,`, 100_000)+`"b":1}}`, 200)
	if served := w.Served.Load(); served != 2 {
		t.Errorf("%d requests reached the worker; want 2", served)
	}
}

// TestStorm has many clients send a request and be gone: nothing is left of
// them.
func TestStorm(t *testing.T) {
	w := sim.New(sim.Options{Own: true})
	w.Hang.Store(true)
	r := newRig(t, []*sim.Worker{w}, nil)
	for i := range 300 {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(chatBody, i%2 == 0, "")
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		if i%3 == 0 {
			c.(*net.TCPConn).SetLinger(0) // a reset
		} else if i%3 == 1 {
			io.WriteString(c, "garbage")
		}
		c.Close()
	}
	r.until("nothing is left", func() bool {
		s := r.door.State()
		return s.Streams == 0 && s.Queued == 0 && s.Workers[0].Requests.InFlight == 0 && s.Workers[0].KV.ChargedTokens == 0 && w.Live.Load() == 0
	})
	w.Hang.Store(false)
	if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != 200 {
		t.Errorf("after the storm: got %d %s", resp.StatusCode, got)
	}
}

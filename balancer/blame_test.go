package balancer_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// TestTwoDeaths gives a request that kills every worker which computes it to two of
// four, and to no third, however its answer is asked for and wherever in it they die.
func TestTwoDeaths(t *testing.T) {
	f := func(name string, stream bool, words string, code int) {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			dies := func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if n := asked.Add(1); words != "" && n == 1 {
					w.Header().Set("Content-Type", "text/event-stream")
					flushed(w, words)
				}
				panic(http.ErrAbortHandler)
			}
			r := stubRig(t, nil, dies, dies, dies, dies)
			resp, got := r.post("/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":"x","stream":%v,"temperature":0}`, stream))
			if resp.StatusCode != code || strings.Count(got, "workers_died") != 1 || strings.Contains(got, "[DONE]") {
				t.Errorf("got %d %s", resp.StatusCode, got)
			}
			if n := asked.Load(); n != 2 {
				t.Errorf("%d workers were given it", n)
			}
		})
	}
	f("at once", false, "", 500)
	f("at once, streamed", true, "", 500)
	f("within the stream", true, `data: {"id":"1","object":"text_completion","created":1,"model":"sim","choices":[{"index":0,"text":"hi","finish_reason":null}]}`+"\n\n", 200)
}

// TestResetIsNoDeath sends a request to three workers whose kernel resets it, as it
// does if a process ends before it has read what was sent: none of them had it, and
// the fourth serves it.
func TestResetIsNoDeath(t *testing.T) {
	resets := func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
			t.Error(err)
		}
		conn.Close()
	}
	serves := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"choices":[{"text":"ok"}]}`)
	}
	r := stubRig(t, nil, resets, resets, resets, serves)
	for range 8 {
		if resp, got := r.post("/v1/completions", `{"model":"sim","prompt":"x"}`); resp.StatusCode != 200 {
			t.Errorf("got %d %s", resp.StatusCode, got)
		}
	}
}

// TestLastWorkerStays has one client send what all workers fail on: none of them is
// taken out for it, and somebody else is served at once. A worker that fails where
// others do not is.
func TestLastWorkerStays(t *testing.T) {
	poison := func(bad bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			w.Header().Set("Content-Type", "application/json")
			if bad || strings.Contains(string(body), "poison") {
				w.WriteHeader(500)
				io.WriteString(w, `{"error":{"message":"no"}}`)
				return
			}
			io.WriteString(w, `{"choices":[{"message":{"content":"ok"}}]}`)
		}
	}
	out := func(r *rig) (n int) {
		for _, w := range r.door.State().Workers {
			if w.State == "ejected" {
				n++
			}
		}
		return n
	}
	body := `{"model":"sim","messages":[{"role":"user","content":%q}]}`
	t.Run("the request's fault", func(t *testing.T) {
		r := stubRig(t, func(s *control.WorkerSet) { s.Door.Breaker.Failures = 3 }, poison(false), poison(false))
		for range 40 { // more than the budget of retries
			if resp, got := r.post("/v1/chat/completions", fmt.Sprintf(body, "poison")); resp.StatusCode != 500 {
				t.Fatalf("got %d %s", resp.StatusCode, got)
			}
			if out(r) == 2 {
				t.Fatal("no worker is left")
			}
		}
		if resp, got := r.post("/v1/chat/completions", fmt.Sprintf(body, "hello")); resp.StatusCode != 200 {
			t.Errorf("somebody else: %d %s", resp.StatusCode, got)
		}
	})
	t.Run("one worker's fault", func(t *testing.T) {
		r := stubRig(t, func(s *control.WorkerSet) {
			s.Door.Breaker.Failures = 3
			s.Pools[0].Policy = "round_robin"
		}, poison(true), poison(false))
		for range 8 {
			if resp, got := r.post("/v1/chat/completions", fmt.Sprintf(body, "hello")); resp.StatusCode != 200 {
				t.Fatalf("got %d %s", resp.StatusCode, got)
			}
		}
		if s := r.door.State().Workers[0].State; s != "ejected" {
			t.Errorf("the worker that fails is %s", s)
		}
	})
}

// TestTrialServesAll kills the only other worker while one is on trial with a small
// share: that one serves everybody.
func TestTrialServesAll(t *testing.T) {
	old, fresh := sim.New(sim.Options{Words: 3}), sim.New(sim.Options{Words: 3})
	r := newRig(t, []*sim.Worker{old, fresh}, func(s *control.WorkerSet) {
		s.Pools[0].Canary = &control.Canary{Worker: "2", Share: 0.125}
	})
	for range 8 {
		if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != 200 {
			t.Fatalf("got %d %s", resp.StatusCode, got)
		}
	}
	if n := fresh.Served.Load(); n != 1 {
		t.Errorf("the one on trial has served %d of 8", n)
	}
	old.Stop()
	for range 20 {
		if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != 200 {
			t.Fatalf("the other one is dead: %d %s", resp.StatusCode, got)
		}
	}
}

package balancer_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// TestNeverTwice lets every worker fail a request: each is asked once, however
// it fails; no more than two die of it, which cost nothing of the retries' budget.
func TestNeverTwice(t *testing.T) {
	const n = 5
	f := func(name string, answer http.HandlerFunc, stream bool, asked int, status int) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			counts := map[int]int{}
			var answers []http.HandlerFunc
			for i := range n {
				answers = append(answers, func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					counts[i]++
					mu.Unlock()
					answer(w, r)
				})
			}
			r := stubRig(t, func(s *control.WorkerSet) {
				s.Door.Retry = configs.Retry{Attempts: 2, Budget: 0.2}
				s.Pools[0].Policy = "round_robin"
			}, answers...)
			resp, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, stream, ""))
			if resp.StatusCode != status {
				t.Errorf("got %d %s; want %d", resp.StatusCode, got, status)
			}
			mu.Lock()
			defer mu.Unlock()
			sum := 0
			for i, c := range counts {
				sum += c
				if c > 1 {
					t.Errorf("worker %d was asked %d times", i, c)
				}
			}
			if sum != asked {
				t.Errorf("%d workers were asked; want %d", sum, asked)
			}
		})
	}
	die := func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			c.Close()
		}
	}
	fail := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }
	halfway := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		flushed(w, oneEvent[:50])
		die(w, r)
	}
	f("all die", die, false, 2, 500)
	f("all die, streaming", die, true, 2, 500)
	f("all die within the first event", halfway, true, 2, 200)
	var dead atomic.Bool
	f("one dies", func(w http.ResponseWriter, r *http.Request) {
		if dead.CompareAndSwap(false, true) {
			die(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, oneEvent+endEvents)
	}, true, 2, 200)
	f("all say 500", fail, false, 3, 500) // the first, and two attempts
}

// TestQueueIsLeft: a client that goes while it waits is gone from the queue,
// though no room was to be had meanwhile.
func TestQueueIsLeft(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 5, Capacity: 400})
	w.Hang.Store(true)
	r := newRig(t, []*sim.Worker{w}, nil)
	var all sync.WaitGroup
	ask := func() context.CancelFunc {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/chat/completions", strings.NewReader(okBody))
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if resp, err := r.client.Do(req); err == nil {
				resp.Body.Close()
			}
		})
		return cancel
	}
	first := ask()
	r.until("the worker is full", func() bool { return w.Live.Load() == 1 })
	second := ask()
	r.until("one waits", func() bool { return len(r.door.Queued()) == 1 })
	third := ask()
	r.until("two wait", func() bool { return len(r.door.Queued()) == 2 })
	second()
	r.until("who left is gone, and the next has moved up", func() bool {
		q := r.door.Queued()
		return len(q) == 1 && q[0].Position == 1
	})
	if w.Served.Load() != 1 {
		t.Error("somebody was served")
	}
	third()
	first()
	all.Wait()
	r.until("nothing is left", func() bool { return len(r.door.Requests()) == 0 })
}

// TestSecondStop ends a door that drains for a stream which never ends: the
// second word is obeyed at once, and the client is told.
func TestSecondStop(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Pace: time.Minute})
	startWorkers(t, w)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	set := setOf(nil, w)
	d, err := balancer.New(balancer.Options{Listener: ln, Set: &set, Log: slog.New(slog.DiscardHandler), DrainTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	d.CutWithin(time.Minute)
	soft, first := context.WithCancel(t.Context())
	hard, second := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(soft, hard) }()
	r := &rig{t: t, url: "http://" + ln.Addr().String(), client: &http.Client{Transport: &http.Transport{}}}
	defer r.client.CloseIdleConnections()
	answer := make(chan string, 1)
	r.until("the worker is reached", func() bool { return d.State().Workers[0].Reached })
	go func() {
		_, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""))
		answer <- got
	}()
	r.until("the stream runs", func() bool { return w.Live.Load() == 1 && d.State().Workers[0].Requests.InFlight == 1 })
	idle := dialRaw(t, r.url)
	fmt.Fprint(idle, "GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, err := http.ReadResponse(idle.in, nil); err != nil || resp.StatusCode != 200 {
		t.Fatalf("before the end: %v %v", resp, err)
	} else {
		io.Copy(io.Discard, resp.Body)
	}
	first()
	r.until("it drains", func() bool { return d.State().Phase == "draining" })
	fmt.Fprint(idle, "GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, err := http.ReadResponse(idle.in, nil); err != nil || resp.StatusCode != 503 {
		t.Errorf("while it drains, readiness is %v %v", resp, err)
	}
	if len(done) > 0 {
		t.Fatal("the door has ended under a stream")
	}
	second()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s := hear(t, <-answer); !s.failed || s.done || !strings.Contains(s.raw, "shutting_down") {
		t.Errorf("the client got %q", s.raw)
	}
}

// TestCancelledStream ends a stream for an operator: its client is told, and
// its worker.
func TestCancelledStream(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 1000, Pace: 5 * time.Millisecond})
	r := newRig(t, []*sim.Worker{w}, nil)
	answer := make(chan string, 1)
	go func() {
		_, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""), "X-Request-Id", "mine")
		answer <- got
	}()
	r.until("the stream has tokens", func() bool { q := r.door.Requests(); return len(q) == 1 && q[0].Output > 2 })
	if !r.door.Cancel("mine") {
		t.Fatal("the stream is not there")
	}
	if s := hear(t, <-answer); !s.failed || s.done || !strings.Contains(s.raw, `"code":"cancelled"`) || !strings.Contains(s.raw, "READ: ") {
		t.Errorf("the client got …%q", s.raw[max(0, len(s.raw)-300):])
	}
	r.until("the worker is told", func() bool { return w.Cancelled.Load() == 1 })
}

// locked is a writer that several goroutines may use.
type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

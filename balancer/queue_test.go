package balancer_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
	"roundhouse/worker/api"
)

// TestWaitedIsTold lets a request wait for room: its worker is told for how long,
// by the door's own clock, whatever the client says; one that found room at once
// is said to have waited for nothing.
func TestWaitedIsTold(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 5, Capacity: 1200})
	w.Hang.Store(true)
	r := newRig(t, []*sim.Worker{w}, nil)
	body := fmt.Sprintf(`{"model":"sim","max_tokens":100,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("word ", 800))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(api.HeaderWaited, "7")
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if resp, err := r.client.Do(req); err == nil {
			resp.Body.Close()
		}
	})
	r.until("the worker is full", func() bool { return w.Served.Load() > 0 })
	began := time.Now()
	answered := make(chan int, 1)
	wg.Go(func() {
		resp, _ := r.post("/v1/chat/completions", body, api.HeaderWaited, "86400000")
		answered <- resp.StatusCode
	})
	r.until("the other one waits", func() bool { return len(r.door.Queued()) == 1 })
	seen := time.Now()
	r.until("it has waited", func() bool { return time.Since(seen) >= 30*time.Millisecond })
	w.Hang.Store(false)
	leave()
	if status := <-answered; status != 200 {
		t.Fatalf("got %d", status)
	}
	heads := w.Heads()
	if h, ok := heads[0][api.HeaderWaited]; ok {
		t.Errorf("the first one is said to have waited %s ms", h)
	}
	if ms := heads[1].Get(api.HeaderWaited); api.Waited(ms) < 29*time.Millisecond || api.Waited(ms) > time.Since(began) {
		t.Errorf("the other one is said to have waited %q ms", ms)
	}
}

// TestQueueBeforeEngines puts a worker that computes prompts as they come behind
// the door, and has it say that requests wait there: what comes then waits at the
// door, and goes on all the same when it has waited long enough, or when there is
// no room to wait.
func TestQueueBeforeEngines(t *testing.T) {
	w := sim.New(sim.Options{Words: 2, Context: 1 << 20})
	w.Hang.Store(true)
	w.Lie.Store("vllm:kv_cache_usage_perc 0.1\nvllm:num_requests_running 1\nvllm:num_requests_waiting 1\nvllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"62500\"} 1\n")
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Pools[0].Scrape.Interval = 1
		s.Door.Queue = configs.Queue{MaxRequests: 1, MaxWait: configs.Duration(time.Hour)}
	})
	ctx, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer leave()
	send := func(words int) {
		body := fmt.Sprintf(`{"model":"sim","max_tokens":9,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("word ", words))
		req, err := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		wg.Go(func() {
			if resp, err := r.client.Do(req); err == nil {
				resp.Body.Close()
			}
		})
	}
	send(60_000)
	r.until("the worker has a long prompt", func() bool { return w.Served.Load() == 1 })
	served := int64(1)
	send(10)
	r.until("the next one waits", func() bool {
		if w.Served.Load() > served { // no report has come yet, or none for a while
			served++
			send(10)
		}
		return len(r.door.Queued()) == 1
	})
	send(20)
	r.until("one for which the queue has no room is sent", func() bool { return w.Served.Load() > served })
	set := r.set
	set.Version, set.Door.Queue = 2, configs.Queue{MaxRequests: 9, MaxWait: configs.Duration(50 * time.Millisecond)}
	if _, err := r.door.Apply(set); err != nil {
		t.Fatal(err)
	}
	served = w.Served.Load()
	send(30)
	r.until("one that waited is sent", func() bool { return w.Served.Load() > served })
	leave()
	r.until("nobody waits", func() bool { return len(r.door.Queued()) == 0 })
}

// TestQueueOrder lets the shorter of one key's requests go first, whichever
// came first. They differ by more than what one may count less for having waited
// half a minute.
func TestQueueOrder(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 5, Capacity: 120_000, Context: 1 << 20})
	w.Hang.Store(true)
	r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
		s.Door.Queue = configs.Queue{MaxRequests: 9, MaxWait: configs.Duration(time.Minute)}
	})
	ask := func(words int) string {
		return fmt.Sprintf(`{"model":"sim","max_tokens":100,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("word ", words))
	}
	var wg sync.WaitGroup
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/chat/completions", strings.NewReader(ask(80_000)))
	if err != nil {
		t.Fatal(err)
	}
	wg.Go(func() {
		if resp, err := r.client.Do(req); err == nil {
			resp.Body.Close()
		}
	})
	r.until("the worker is full", func() bool { return w.Served.Load() > 0 })
	for i, words := range []int{40_000, 30_000, 60_000} {
		wg.Go(func() {
			if resp, _ := r.post("/v1/chat/completions", ask(words), "x-request-id", fmt.Sprint(words)); resp.StatusCode != 200 {
				t.Errorf("%d words: got %d", words, resp.StatusCode)
			}
		})
		r.until("it waits", func() bool { return len(r.door.Queued()) == i+1 })
	}
	want := map[string]int{"30000": 1, "40000": 2, "60000": 3}
	for _, q := range r.door.Queued() {
		if q.Position != want[q.ID] {
			t.Errorf("the request of %s words stands at %d; want %d", q.ID, q.Position, want[q.ID])
		}
	}
	w.Hang.Store(false)
	leave()
	wg.Wait()
}

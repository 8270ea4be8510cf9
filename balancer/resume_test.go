package balancer_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/worker/api"
)

// TestResume cuts a stream after some tokens and looks at what the client got.
func TestResume(t *testing.T) {
	const tools = `,"tools":[{"type":"function","function":{"name":"f"}}]`
	f := func(name string, one sim.Options, extra, path string, whole bool) {
		t.Run(name, func(t *testing.T) {
			a, b := sim.New(one), sim.New(one)
			if strings.Contains(extra, "stop") { // what is held back is said again, so that one death is enough
				a.DieOnce = new(atomic.Int64)
				a.DieOnce.Store(7)
				b.DieOnce = a.DieOnce
			} else {
				a.DieAfter.Store(7)
				b.DieAfter.Store(7)
			}
			r := newRig(t, []*sim.Worker{a, b}, func(s *control.WorkerSet) {
				if one.Reason == 0 {
					s.Pools[0].ReasoningEnd = ""
				}
				s.Door.Resume.Enabled = whole
			})
			body := fmt.Sprintf(chatBody, true, extra)
			if path == "/v1/completions" {
				body = `{"model":"sim","prompt":"count","max_tokens":12,"stream":true` + extra + `}`
			}
			resp, got := r.post(path, body)
			s := hear(t, got)
			if resp.StatusCode != 200 {
				t.Fatalf("status %d: %s", resp.StatusCode, got)
			}
			if strings.Contains(got, "token_ids\":[") || strings.Contains(got, "\"usage\"") {
				t.Fatalf("the client sees what it did not ask for:\n%s", got)
			}
			if !whole {
				if !s.failed || s.done || !strings.Contains(got, "READ: ") {
					t.Fatalf("a broken stream must end with one error event, without an end mark: %s", got)
				}
				return
			}
			if s.text != words(one.Reason, 12) || s.reasoning != words(0, one.Reason) || !s.done || s.failed || len(s.ids) != 1 {
				t.Fatalf("text %q, reasoning %q, done %v, failed %v, ids %v\n%s", s.text, s.reasoning, s.done, s.failed, s.ids, got)
			}
		})
	}
	f("our worker, chat", sim.Options{Own: true, Words: 12}, "", "/v1/chat/completions", true)
	f("our worker, completion", sim.Options{Own: true, Words: 12}, "", "/v1/completions", true)
	f("our worker, tools", sim.Options{Own: true, Words: 12}, tools, "/v1/chat/completions", true)
	f("vLLM, chat", sim.Options{Words: 12}, "", "/v1/chat/completions", true)
	f("vLLM, completion", sim.Options{Words: 12}, "", "/v1/completions", true)
	f("vLLM, chat, no metrics", sim.Options{Words: 12, Mute: true}, "", "/v1/chat/completions", true)
	f("vLLM, reasoning", sim.Options{Words: 12, Reason: 9}, "", "/v1/chat/completions", true)
	for _, stop := range []string{"XY", "STOP", "a long stop string"} {
		f("vLLM, chat, stop "+stop, sim.Options{Words: 12}, fmt.Sprintf(`,"stop":%q`, stop), "/v1/chat/completions", true)
		f("vLLM, completion, stop "+stop, sim.Options{Words: 12}, fmt.Sprintf(`,"stop":%q`, stop), "/v1/completions", true)
	}
	f("our worker, stop", sim.Options{Own: true, Words: 12}, `,"stop":"STOP"`, "/v1/chat/completions", true)
	f("vLLM, half a character", sim.Options{Words: 12, Halves: true}, "", "/v1/completions", true)
	f("vLLM, chat, half a character", sim.Options{Words: 12, Halves: true}, "", "/v1/chat/completions", true)
	f("our worker, resume switched off", sim.Options{Own: true, Words: 12}, "", "/v1/chat/completions", false)
	f("vLLM, resume switched off", sim.Options{Words: 12}, "", "/v1/completions", false)
}

// TestReplay gives an answer again where token ids cannot carry it on.
func TestReplay(t *testing.T) {
	f := func(name string, one sim.Options, extra, otherSalt string, whole bool) {
		t.Run(name, func(t *testing.T) {
			a, b := sim.New(one), sim.New(one)
			first := new(atomic.Int64) // whichever worker it is that serves first dies
			first.Store(5)
			a.DieOnce, b.DieOnce, b.Salt = first, first, otherSalt
			r := newRig(t, []*sim.Worker{a, b}, nil)
			_, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, extra))
			s := hear(t, got)
			if whole && (s.text != words(0, 12) || !s.done || s.failed || len(s.ids) != 1) {
				t.Fatalf("got %+v", s)
			}
			if !whole && (!s.failed || s.done) {
				t.Fatalf("two answers were mixed: %s", got)
			}
		})
	}
	f("engine without ids", sim.Options{Words: 12, NoIDs: true}, "", "", true)
	f("engine that says no context", sim.Options{Words: 12, Context: -1}, "", "", true)
	f("tools on vLLM", sim.Options{Words: 12}, `,"tools":[{"type":"function"}]`, "", true)
	f("seed on vLLM", sim.Options{Words: 12}, `,"seed":1`, "", true)
	f("another answer", sim.Options{Words: 12, NoIDs: true}, "", "x", false)
}

// TestPark kills the only worker under a stream and starts it again.
func TestPark(t *testing.T) {
	w := sim.New(sim.Options{Own: true, Words: 200, Pace: 5 * time.Millisecond})
	r := newRig(t, []*sim.Worker{w}, nil)
	answer := make(chan string, 2)
	for range 2 {
		go func() {
			_, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""))
			answer <- got
		}()
	}
	r.until("both streams have begun", func() bool { return w.Live.Load() == 2 })
	r.until("both have tokens", func() bool {
		some := 0
		for _, q := range r.door.Requests() {
			if q.Output > 1 {
				some++
			}
		}
		return some == 2
	})
	w.Stop()
	r.until("both are parked", func() bool {
		parked := 0
		for _, q := range r.door.Requests() {
			if q.State == "parked" || q.State == "queued" {
				parked++
			}
		}
		return parked == 2
	})
	if resp, err := r.client.Get(r.url + "/health"); err != nil || resp.StatusCode != 200 {
		t.Fatal("a door that can park is healthy")
	} else {
		resp.Body.Close()
	}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if s := hear(t, <-answer); s.text != words(0, 200) || !s.done || s.failed {
			t.Fatalf("got %+v", s)
		}
	}
	for _, h := range w.Heads()[2:] {
		if api.Waited(h.Get(api.HeaderWaited)) == 0 {
			t.Errorf("a stream goes on and is not said to have waited: %v", h)
		}
	}
}

// TestForcedDrain moves the streams of a worker whose drain is over.
func TestForcedDrain(t *testing.T) {
	a, b := sim.New(sim.Options{Own: true, Words: 200, Pace: time.Minute}), sim.New(sim.Options{Own: true, Words: 200})
	r := newRig(t, []*sim.Worker{a, b}, func(s *control.WorkerSet) { s.Pools[0].Workers[1].State = "starting" })
	answer := make(chan string, 1)
	go func() {
		_, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""))
		answer <- got
	}()
	r.until("the stream has begun", func() bool { q := r.door.Requests(); return len(q) == 1 && q[0].Output == 1 })
	now := time.Now()
	r.reset(func(workers []control.Worker) {
		workers[0].State, workers[0].Deadline = "draining", &now
		workers[1].State = "ready"
	})
	if s := hear(t, <-answer); s.text != words(0, 200) || !s.done || s.failed {
		t.Fatalf("got %+v", s)
	}
	r.until("the worker is drained", func() bool { return r.door.State().Workers[0].State == "drained" })
	r.until("the worker that was drained is told to stop", func() bool { return a.Cancelled.Load() == 1 })
}

// TestKilling keeps streams going while workers die and come back.
func TestKilling(t *testing.T) {
	workers := []*sim.Worker{sim.New(sim.Options{Own: true}), sim.New(sim.Options{Own: true}), sim.New(sim.Options{Own: true})}
	for _, w := range workers {
		w.Words, w.Pace = 60, 4*time.Millisecond
	}
	r := newRig(t, workers, nil)
	stop := make(chan struct{})
	var killer, clients sync.WaitGroup
	killer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(70 * time.Millisecond):
			}
			r.getOn(stop)
			w := workers[i%3]
			w.Stop()
			<-time.After(30 * time.Millisecond) // it stays dead for a while
			if err := w.Start(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 24 {
		clients.Go(func() {
			for range 3 {
				_, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, ""))
				if s := hear(t, got); s.text != words(0, 60) || !s.done || s.failed || len(s.ids) != 1 {
					t.Errorf("got text %q done %v failed %v, at the end %q", s.text, s.done, s.failed, s.raw[max(0, len(s.raw)-500):])
				}
			}
		})
	}
	clients.Wait()
	close(stop)
	killer.Wait()
	r.until("nothing is charged any more", func() bool {
		for _, w := range r.door.State().Workers {
			if w.KV.ChargedTokens != 0 || w.Requests.InFlight != 0 {
				return false
			}
		}
		return true
	})
}

// getOn waits until every stream that is there has got on: one that all workers
// leave at the same place has none to go to.
func (r *rig) getOn(stop <-chan struct{}) {
	was := map[string]int64{}
	for _, q := range r.door.Requests() {
		was[q.ID] = int64(q.Output)
	}
	r.until("all streams get on", func() bool {
		select {
		case <-stop:
			return true
		default:
		}
		for _, q := range r.door.Requests() {
			if n, there := was[q.ID]; there && int64(q.Output) <= n {
				return false
			}
		}
		return true
	})
}

// TestHangup leaves in the middle and looks when the worker is told.
func TestHangup(t *testing.T) {
	f := func(name string, stream bool, w *sim.Worker) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, []*sim.Worker{w}, nil)
			req, err := http.NewRequest("POST", r.url+"/v1/chat/completions", strings.NewReader(fmt.Sprintf(chatBody, stream, "")))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := contextOf(t)
			go func() {
				r.until("the worker has it", func() bool { return w.Live.Load() == 1 })
				cancel()
			}()
			if resp, err := r.client.Do(req.WithContext(ctx)); err == nil {
				<-ctx.Done()
				resp.Body.Close()
			}
			// Nothing is written to the client for a minute, so that only its socket can tell.
			r.until("the worker is told", func() bool { return w.Cancelled.Load() == 1 })
			r.until("nothing is charged", func() bool { return r.door.State().Workers[0].Requests.InFlight == 0 })
			r.until("it is counted", func() bool {
				resp, err := http.Get(r.url + "/metrics")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				return err == nil && strings.Contains(string(text), `roundhouse_hangups_total{phase="`) && strings.Contains(string(text), `code="499",model="sim",outcome="cancelled"`)
			})
			http.DefaultClient.CloseIdleConnections()
		})
	}
	f("a silent prefill, streamed", true, sim.New(sim.Options{Own: true, Prefill: time.Minute}))
	f("between tokens", true, sim.New(sim.Options{Own: true, Pace: time.Minute}))
	f("without a stream", false, sim.New(sim.Options{Own: true, Pace: time.Minute}))
	f("a worker that hangs", false, func() *sim.Worker { w := sim.New(sim.Options{Own: true}); w.Hang.Store(true); return w }())
}

// TestReasoningWithStops cuts a stream of a pool that parts reasoning from the
// answer, while its worker holds text back for a stop string: in the reasoning
// and in the answer it goes on from token ids, and near the marker between them
// it is given again. Behind a cut the client gets what it would have got without
// one; only the fault of the worker's own parser at the marker may be missing.
func TestReasoningWithStops(t *testing.T) {
	const all = 200
	ask := func(t *testing.T, die int64, stop string) (s said, bodies string) {
		a, b := sim.New(sim.Options{Words: all, Reason: all / 2}), sim.New(sim.Options{Words: all, Reason: all / 2})
		a.DieOnce = new(atomic.Int64) // whichever worker serves first dies
		a.DieOnce.Store(die)
		b.DieOnce = a.DieOnce
		r := newRig(t, []*sim.Worker{a, b}, nil)
		_, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, fmt.Sprintf(`,"stop":%q,"max_tokens":%d`, stop, all)))
		return hear(t, got), strings.Join(append(a.Bodies(), b.Bodies()...), "\n")
	}
	for _, stop := range []string{"XY", "STOP", "a long stop string"} {
		uncut, _ := ask(t, 0, stop)
		f := func(name string, die int64, byIDs, clean bool) {
			t.Run(name+", "+stop, func(t *testing.T) {
				s, bodies := ask(t, die, stop)
				reasoning, text := uncut.reasoning, uncut.text
				if clean {
					reasoning, text = words(0, all/2), words(all/2, all)
				}
				if s.reasoning != reasoning || s.text != text || !s.done || s.failed || len(s.ids) != 1 {
					t.Errorf("got reasoning %q, text %q, done %v, failed %v, ids %v; want %q, %q", s.reasoning, s.text, s.done, s.failed, s.ids, reasoning, text)
				}
				if got := strings.Contains(bodies, `"prompt":[1,2,3,1000,`); got != byIDs || strings.Count(bodies, "\n") != 1 {
					t.Errorf("it went on by token ids: %v; want %v:\n%s", got, byIDs, bodies)
				}
			})
		}
		f("at the beginning", 6, false, false)
		f("in the reasoning", 60, true, true)
		f("at its end", 99, true, true)
		f("at the marker", 102, false, false)
		f("in the answer", 160, true, false)
	}
}

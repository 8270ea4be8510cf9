package balancer_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// noisePNG is a file that begins as a PNG of 1000 by 800 pixels does; what follows
// is the seed's.
func noisePNG(seed uint64, size int) string {
	b := make([]byte, size)
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	copy(b, "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x03\xe8\x00\x00\x03\x20")
	return base64.StdEncoding.EncodeToString(b)
}

// TestPicturesMeetTheirRows: a picture leads to the worker that has seen it, behind
// another question, with its slashes escaped, and in another API.
func TestPicturesMeetTheirRows(t *testing.T) {
	for _, own := range []bool{true, false} {
		var workers []*sim.Worker
		for range 3 {
			workers = append(workers, sim.New(sim.Options{Own: own, Words: 2, Prefill: 20 * time.Millisecond}))
		}
		r := newRig(t, workers, nil)
		ask := func(path, body string) string {
			t.Helper()
			resp, got := r.post(path, body)
			d, ok := r.door.Decision(resp.Header.Get("x-request-id"))
			if resp.StatusCode != 200 || !ok {
				t.Fatalf("status %d %s", resp.StatusCode, got)
			}
			return d.Chosen
		}
		chat := func(question, picture string) string {
			q, err := json.Marshal(question)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf(`{"model":"sim","messages":[{"role":"user","content":[{"type":"text","text":%s},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]}`, q, picture)
		}
		at := map[string]string{}
		used := map[string]bool{}
		for seed := range uint64(6) {
			p := noisePNG(seed, 20_000)
			at[p] = ask("/v1/chat/completions", chat(strings.Repeat(fmt.Sprint("What is it, ", seed, "? "), 150), p))
			used[at[p]] = true
		}
		if len(used) != 3 {
			t.Errorf("six pictures went to %d of 3 workers", len(used))
		}
		for p, worker := range at {
			for what, got := range map[string]string{
				"behind another question": ask("/v1/chat/completions", chat(strings.Repeat("How many are there? ", 90), p)),
				"with slashes escaped":    ask("/v1/chat/completions", chat("Why?", strings.ReplaceAll(p, "/", `\/`))),
				"in a message":            ask("/v1/messages", fmt.Sprintf(`{"model":"sim","max_tokens":3,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}]}`, p)),
			} {
				if got != worker {
					t.Errorf("ours %v: %s, a picture that %s has seen goes to %s", own, what, worker, got)
				}
			}
		}
	}
}

// TestPicturesGoOnWithinMemory: streams with pictures of nine megabytes together
// lose their worker and go on elsewhere. Where the door may hold less than half of
// that, each is whole, refused, or ends with an error; and at the end nothing is held.
func TestPicturesGoOnWithinMemory(t *testing.T) {
	for _, memory := range []configs.Size{64 << 20, 4 << 20} {
		var once atomic.Int64
		once.Store(5)
		o := sim.Options{Own: true, Words: 12, Pace: time.Millisecond, Context: 1 << 20, Capacity: 1 << 30}
		a, b := sim.New(o), sim.New(o)
		a.DieOnce, b.DieOnce = &once, &once
		r := newRig(t, []*sim.Worker{a, b}, func(s *control.WorkerSet) { s.Door.Memory = memory })
		var all sync.WaitGroup
		var whole atomic.Int64
		for seed := range uint64(8) {
			all.Go(func() {
				resp, got := r.post("/v1/chat/completions", fmt.Sprintf(
					`{"model":"sim","stream":true,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]}`, noisePNG(seed, 900<<10)))
				switch s := hear(t, got); {
				case resp.StatusCode == 200 && s.done && !s.failed:
					whole.Add(1)
				case memory > 9<<20, !strings.Contains(got, `"error":{"message":"`):
					t.Errorf("%d bytes of memory: status %d, %.3000s", memory, resp.StatusCode, got)
				}
			})
		}
		all.Wait()
		if whole.Load() < 1 || once.Load() > 0 {
			t.Errorf("%d bytes of memory: %d streams are whole; no worker has died: %v", memory, whole.Load(), once.Load() > 0)
		}
		r.until("no memory is held", func() bool { return r.door.Held() == 0 })
	}
}

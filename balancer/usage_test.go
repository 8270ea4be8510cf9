package balancer_test

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
)

// TestResumedUsage asks for the usage of a stream that goes on at another
// worker: it is that of the whole answer, whichever way the stream took.
func TestResumedUsage(t *testing.T) {
	f := func(name string, one sim.Options, extra string) {
		t.Run(name, func(t *testing.T) {
			a, b := sim.New(one), sim.New(one)
			a.DieOnce = new(atomic.Int64) // whichever worker serves first dies
			b.DieOnce = a.DieOnce
			r := newRig(t, []*sim.Worker{a, b}, func(s *control.WorkerSet) { s.Pools[0].ReasoningEnd = "" })
			ask := func() (usage struct {
				Prompt    int `json:"prompt_tokens"`
				Generated int `json:"completion_tokens"`
				Total     int `json:"total_tokens"`
			}) {
				_, got := r.post("/v1/chat/completions", fmt.Sprintf(chatBody, true, `,"stream_options":{"include_usage":true}`+extra))
				s := hear(t, got)
				if s.text != words(0, 12) || !s.done || s.failed {
					t.Fatalf("got %+v", s)
				}
				if err := json.Unmarshal([]byte(s.usage), &usage); err != nil {
					t.Fatalf("usage %q: %v", s.usage, err)
				}
				return usage
			}
			whole := ask()
			a.DieOnce.Store(5)
			if got := ask(); got.Generated != 12 || got.Generated != whole.Generated || got.Total != got.Prompt+got.Generated || got.Prompt <= 0 {
				t.Errorf("usage %+v; of an answer from one worker %+v", got, whole)
			}
			if a.DieOnce.Load() != 0 {
				t.Error("no worker died")
			}
		})
	}
	f("our worker", sim.Options{Own: true, Words: 12}, "")
	f("vLLM, by token ids", sim.Options{Words: 12}, "")
	f("vLLM, given again", sim.Options{Words: 12}, `,"seed":1`)
}

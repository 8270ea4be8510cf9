package fleet

import (
	"sort"
	"sync/atomic"

	"roundhouse/balancer/control"
)

// Tally counts a pool's requests for those who look at the door as a whole: what the
// metrics count by model and route as well, to be read often and at once.
type Tally struct {
	outcomes [5]atomic.Int64 // by outcomes
	turned   atomic.Int64
	prompt   atomic.Int64
	ttft     [len(control.TTFTBounds) + 1]atomic.Int64
}

var outcomes = [...]string{"ok", "client_error", "refused", "failed", "cancelled"}

// Ended counts a request that has ended, by the word for how, and its prompt.
func (t *Tally) Ended(outcome string, prompt int64) {
	for i, name := range outcomes {
		if name == outcome {
			t.outcomes[i].Add(1)
		}
	}
	t.prompt.Add(prompt)
}

// First counts a first token, by the nanoseconds that it took.
func (t *Tally) First(ns int64) {
	t.ttft[sort.SearchFloat64s(control.TTFTBounds[:], float64(ns)/1e9)].Add(1)
}

// Refused counts a request that was refused, where that was for want of something.
func (t *Tally) Refused(reason string) {
	switch reason {
	case "full", "wait", "no_worker", "memory":
		t.turned.Add(1)
	}
}

// Shown is the tally as the private socket shows it.
func (t *Tally) Shown(name string, waiting int) control.PoolState {
	s := control.PoolState{
		Name: name, Waiting: waiting, OK: t.outcomes[0].Load(), ClientError: t.outcomes[1].Load(), Refused: t.outcomes[2].Load(),
		Failed: t.outcomes[3].Load(), Cancelled: t.outcomes[4].Load(), TurnedAway: t.turned.Load(), PromptTokens: t.prompt.Load(),
		TTFT: make([]int64, len(t.ttft)),
	}
	for i := range t.ttft {
		s.TTFT[i] = t.ttft[i].Load()
	}
	return s
}

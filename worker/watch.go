package worker

import (
	"context"
	"time"

	"roundhouse/kernels"
)

// Watched is one step, as a profile has it.
type Watched struct {
	Planned, Began, Ended, Committed time.Time // scheduling, computing and handing out lie between them

	Tokens, Prompts, Decodes int // tokens computed, and sequences whose prompt or next token they were of
	Running, Waiting         int
	Preempted                int
	Usage                    float64        // of the KV cache, 0 to 1
	Spans                    []kernels.Span // valid during the call
}

// WatchSteps has see called after each step, by the engine's goroutine; nil ends it. It
// reports whether the engine runs.
func (e *Engine) WatchSteps(ctx context.Context, see func(*Watched)) bool {
	return e.call(ctx, func() {
		e.watch = see
		e.time()
	})
}

// time has the executable record its steps while somebody watches.
func (e *Engine) time() {
	if t, ok := e.cfg.Exec.(kernels.Timed); ok {
		t.Time(e.watch != nil)
	}
}

// watched tells whoever watches of a step: its plan, or of texts how many tokens and
// texts there were.
func (e *Engine) watched(planned time.Time, plan Plan, tokens, texts int) {
	w := Watched{
		Tokens: tokens, Prompts: texts,
		Planned: planned, Began: e.timings.began, Ended: e.timings.ended, Committed: time.Now(),
		Running: e.sched.Running(), Waiting: e.sched.Waiting(), Preempted: len(plan.Preempted), Usage: e.cache.Usage(),
	}
	for _, en := range plan.Entries {
		w.Tokens += en.Count
		if en.Start < en.Seq.Prompt {
			w.Prompts++
		} else {
			w.Decodes++
		}
	}
	if t, ok := e.cfg.Exec.(kernels.Timed); ok {
		w.Spans = t.Spans()
	}
	e.watch(&w)
}

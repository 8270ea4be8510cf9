package worker

import (
	"context"
	"slices"
)

// pausing is a pause that waits for the requests that run: those that come
// meanwhile are taken in and not scheduled, or the wait might never end.
type pausing struct {
	waiters  []chan struct{} // closed when the wait is over
	requests []*request
	texts    []*pooled
}

// PauseIdle is Pause when all that is under way has ended. It reports whether the
// engine is paused: it is not where ctx ended before, or somebody resumed it.
func (e *Engine) PauseIdle(ctx context.Context) bool {
	over := make(chan struct{})
	if !e.post(func() { e.pausing.waiters = append(e.pausing.waiters, over) }) {
		return false
	}
	select {
	case <-over:
	case <-e.done:
		return false
	case <-ctx.Done():
		e.post(func() { e.leave(over) })
		return false
	}
	return e.Paused(ctx)
}

// leave ends one caller's wait; without any other, nothing is paused.
func (e *Engine) leave(over chan struct{}) {
	if i := slices.Index(e.pausing.waiters, over); i >= 0 {
		e.pausing.waiters = slices.Delete(e.pausing.waiters, i, i+1)
		if len(e.pausing.waiters) == 0 {
			e.letIn()
		}
	}
}

// settle pauses the engine when a wait for that has nothing left to wait for.
// A suspended request would never end.
func (e *Engine) settle() {
	if len(e.pausing.waiters) == 0 {
		return
	}
	left := len(e.live) + len(e.pooling)
	for _, r := range e.pausing.requests {
		if _, alive := e.live[r]; alive {
			left--
		}
	}
	if left == 0 || e.suspended() {
		e.paused = true
		e.letIn()
	}
}

// Resume ends a pause, and a wait for one; a sleep goes on.
func (e *Engine) Resume(ctx context.Context) { e.operate(ctx, e.resume) }

func (e *Engine) resume() {
	e.paused = false
	e.letIn()
}

// letIn ends all waits and schedules what came meanwhile.
func (e *Engine) letIn() {
	p := e.pausing
	e.pausing = pausing{}
	for _, r := range p.requests {
		e.schedule(r)
	}
	e.pooling = append(e.pooling, p.texts...)
	for _, over := range p.waiters {
		close(over)
	}
}

// takeTexts takes in the texts of one request.
func (e *Engine) takeTexts(jobs []*pooled) {
	if len(e.pausing.waiters) > 0 {
		e.pausing.texts = append(e.pausing.texts, jobs...)
		return
	}
	e.pooling = append(e.pooling, jobs...)
}

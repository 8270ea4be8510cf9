package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"roundhouse/test/counting"
)

// sample is what became of one answer.
type sample struct {
	ttft time.Duration
	err  error
}

// load is streams that follow one another.
type load struct {
	tokens atomic.Int64
	cancel context.CancelFunc
	ending atomic.Bool
	all    sync.WaitGroup

	mu      sync.Mutex
	samples []sample
}

// load begins n streams over the questions.
func (h *house) load(ctx context.Context, questions []counting.Range, n int) *load {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{cancel: cancel}
	for i := range n {
		l.all.Go(func() {
			for k := 0; !l.ending.Load(); k++ {
				q := questions[(i+k*5)%len(questions)]
				var s sample
				s.ttft, s.err = counting.Count(ctx, "http://"+h.door, q.From, q.To, func() { l.tokens.Add(1) })
				l.mu.Lock()
				l.samples = append(l.samples, s)
				l.mu.Unlock()
				if s.err != nil {
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
	return l
}

// cut returns what has ended since the last cut.
func (l *load) cut() []sample {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.samples
	l.samples = nil
	return out
}

// stop lets the streams that run end, and begins no more.
func (l *load) stop() {
	l.ending.Store(true)
	l.all.Wait()
	l.cancel()
}

// questions are long enough to be under way for seconds, and short enough that a
// worker drains within them.
func (h *house) questions(ctx context.Context) ([]counting.Range, error) {
	return counting.Questions(ctx, "http://"+h.door, 24, 13)
}

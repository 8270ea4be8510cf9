package pass

import (
	"cmp"
	"slices"
	"sync"
)

// Loads counts what passes through to each worker, by the weight of the requests: one
// that asks for eight pictures is eight.
type Loads struct {
	mu   sync.Mutex
	of   map[string]int
	turn int
}

// Order sorts workers by their load, the least first; equals take turns.
func (l *Loads) Order(workers []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(workers) == 0 {
		return nil
	}
	l.turn++
	at := l.turn % len(workers)
	out := append(slices.Clone(workers[at:]), workers[:at]...)
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(l.of[a], l.of[b]) })
	return out
}

// Add counts a request of that weight at a worker, and takes it out where the weight
// is below zero.
func (l *Loads) Add(worker string, weight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]int{}
	}
	if l.of[worker] += weight; l.of[worker] <= 0 {
		delete(l.of, worker)
	}
}

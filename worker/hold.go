package worker

import "sync"

// Pin keeps an engine that shuts down open for one answer that takes several
// requests, one after the other: the engine is not idle between them, and goes on
// to take them when it takes in nothing else.
type Pin struct {
	engine  *Engine
	release sync.Once
}

// Submit is the engine's.
func (h *Pin) Submit(req Request) (*Stream, error) { return h.engine.submit(req) }

// Release ends the answer. It may be called again.
func (h *Pin) Release() {
	h.release.Do(func() {
		h.engine.mu.Lock()
		h.engine.pins--
		h.engine.mu.Unlock()
	})
}

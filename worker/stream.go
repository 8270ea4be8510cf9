package worker

import (
	"context"
	"sync"
)

// Stream carries the events of one request to one reader. It holds at most
// what the request may generate, so a slow reader delays nobody.
type Stream struct {
	engine *Engine
	req    *request

	mu     sync.Mutex
	events []Event
	ready  chan struct{} // holds one when events is not empty
}

// Next waits for events and returns all that are there. After the last choice
// has ended there are none, and Next is not to be called.
func (s *Stream) Next(ctx context.Context) ([]Event, error) {
	for {
		s.mu.Lock()
		events := s.events
		s.events = nil
		s.mu.Unlock()
		if len(events) > 0 {
			return events, nil
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// End tells the engine that the reader wants no more of a choice: its text is
// complete (FinishStop) or nobody waits for it (FinishAbort). Events that were
// under way may still come.
func (s *Stream) End(choice int, why Finish) {
	s.engine.post(func() { s.engine.endChoice(s.req, choice, why) })
}

// Close ends whatever of the request is not ended yet. It may be called again.
func (s *Stream) Close() {
	s.engine.post(func() {
		for c := range s.req.choices {
			s.engine.endChoice(s.req, c, FinishAbort)
		}
	})
}

func (s *Stream) put(e Event) {
	s.mu.Lock()
	s.events = append(s.events, e)
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

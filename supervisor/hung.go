package supervisor

import (
	"context"
	"errors"
	"time"
)

// hungAfter is how long a worker may have requests and make no progress, and how long
// it may then leave a request of ours unanswered.
const hungAfter = 2 * time.Minute

// doubt is a worker under suspicion: it is asked for one token. An engine that computes
// a long prompt is as silent as one that hangs, but it goes on to the next request.
type doubt struct {
	generation uint64
	cancel     context.CancelFunc
	confirmed  bool // there was no answer
}

// hung reports whether a worker has requests that it does not compute. Its silence is
// a suspicion once it has lasted longer than the doors expect of what they have there,
// by the lengths of prompts and the rate that they have learned; only a request that is
// not answered either makes it certain.
func (s *Supervisor) hung(m *member, p progress, now time.Time) bool {
	silent := p.busy && now.Sub(p.since) > max(s.options.HungAfter, s.patience(m.id))
	if m.doubt != nil && (!silent || m.doubt.generation != p.generation) {
		m.doubt.cancel()
		m.doubt = nil
	}
	if silent && m.doubt == nil && m.probe != nil {
		s.suspect(m, p.generation)
	}
	return silent && m.doubt != nil && m.doubt.confirmed
}

// patience is the longest that a door expects a worker to be silent now.
func (s *Supervisor) patience(id string) (longest time.Duration) {
	for _, d := range s.gate.living() {
		if w := findWorker(d.state, id); w != nil {
			longest = max(longest, time.Duration(w.PatienceSeconds*float64(time.Second)))
		}
	}
	return longest
}

// suspect asks a worker for one token beside the loop. An answer is progress.
func (s *Supervisor) suspect(m *member, generation uint64) {
	ctx, cancel := context.WithTimeout(s.ctx, s.options.HungAfter)
	doubt := &doubt{generation: generation, cancel: cancel}
	m.doubt = doubt
	s.log.Info("a worker has requests and is silent; whether it hangs is tried with a request", "worker", m.id)
	url, key, want := m.probe.url, m.probe.key, s.plan.kinds[m.id].models
	s.group.Go(func() {
		defer cancel()
		err := warm(ctx, s.client, url, key, want)
		if s.ctx.Err() != nil || errors.Is(ctx.Err(), context.Canceled) {
			return
		}
		s.tell(func() {
			switch {
			case m.doubt != doubt:
			case err == nil, ours(err):
				m.progress.since, m.doubt = s.clock.Now(), nil
			default:
				doubt.confirmed = true
			}
		})
	})
}

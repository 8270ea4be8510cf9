package supervisor

import (
	"context"
	"time"

	"roundhouse/supervisor/core"
)

// downAfter is when a worker counts as dead though its process lives. A busy engine may
// miss a health check for seconds, and tokens that come are a better sign than any check.
const downAfter = 30 * time.Second

// progress is when a worker's counters last moved.
type progress struct {
	generation uint64
	sum        int64
	tokens     time.Time // when the sum last moved
	busy       bool
	since      time.Time // as tokens, or when there last was nothing to do
}

// observe gathers what is known into what core decides by.
func (s *Supervisor) observe(now time.Time) core.Observed {
	set := s.set.Load()
	o := core.Observed{Wall: s.clock.Wall(), DiskFull: s.memory.failed != nil || s.memory.noRoom(now), Prepared: s.preparing.prepared, Workers: map[string]core.Seen{}}
	allAcked := true
	for i, d := range s.gate.living() {
		o.Doors++
		allAcked = allAcked && d.acked(set)
		if i == 0 || d.lease.Before(o.Lease) {
			o.Lease = d.lease
		}
	}
	for id := range s.memory.intent.Workers {
		o.Workers[id] = s.seen(id, allAcked, now)
	}
	for id := range s.plan.kinds {
		if _, done := o.Workers[id]; !done {
			o.Workers[id] = s.seen(id, allAcked, now)
		}
	}
	for id, m := range s.fleet.members { // also what nobody remembers
		if _, done := o.Workers[id]; !done && m.found && !m.instance.TakenOver {
			o.Workers[id] = s.seen(id, allAcked, now)
		}
	}
	return o
}

// seen gathers what is known of one worker.
func (s *Supervisor) seen(id string, acked bool, now time.Time) core.Seen {
	seen := core.Seen{Acked: acked, Free: -1}
	kind, configured := s.plan.kinds[id]
	static := kind.driver == "static"
	m := s.fleet.at(id)
	i, exists := m.instance, m.found
	switch {
	case static:
		seen.Process, seen.Generation = core.Alive, s.memory.intent.Workers[id].Generation
	case configured && !s.runnerOf(id).answers():
		seen.Process = core.Unknown
	case !exists:
		seen.Process, seen.Released = core.Absent, true
	case i.Running:
		seen.Process, seen.Leaving, seen.LeavesIn = core.Alive, i.Leaving, i.LeavesIn
	default:
		seen.Process, seen.Exit, seen.Killed, seen.Released = core.Exited, i.Ended, i.Killed, s.released(m, now)
	}
	if exists {
		seen.Generation, seen.Hash, seen.Memory = i.Generation, i.Hash, i.Memory
	}
	seen.Busy = m.act != 0
	generation := s.memory.intent.Workers[id].Generation
	seen.Launched = m.launched != 0 && m.launched == generation
	if f := m.failure; f.why != "" && f.generation == generation {
		if f.away && i.Running && i.Generation == f.generation {
			m.failure = failure{} // it runs after all: its driver was away when that was to be told
		} else {
			seen.Failure, seen.Interrupted = f.why, f.away
		}
	}
	if m.interrupted != 0 && m.interrupted == generation && !i.Running {
		seen.Interrupted = true
	}
	s.byDoors(id, &seen)
	moving := s.moved(m, seen, now)
	if p := m.probe; p != nil && (static || p.generation == seen.Generation) {
		seen.Healthy, seen.Unhealthy = p.healthy, p.unhealthy
		if pool, there := poolOf(s.plan.config, kind.pool); there && len(pool.Adapters) > 0 && !p.adapting.settled {
			seen.Healthy = false // it is in service no earlier than with its adapters
		}
		seen.Warmed, seen.WarmError = p.warmed, p.warmError
		last := p.last
		if last.IsZero() {
			last = p.began
		}
		seen.Down = !p.healthy && now.Sub(last) > s.options.DownAfter && now.Sub(moving.tokens) > s.options.DownAfter
	}
	seen.Hung = !static && s.hung(m, moving, now)
	return seen
}

// byDoors adds what the doors know of a worker.
func (s *Supervisor) byDoors(id string, seen *core.Seen) {
	generation, set := s.memory.intent.Workers[id].Generation, s.set.Load()
	for _, d := range s.gate.living() {
		w := findWorker(d.state, id)
		if w == nil || w.Generation != generation {
			continue
		}
		seen.Reached = seen.Reached || w.Reached && d.acked(set)
		seen.InFlight += w.Requests.InFlight
		if w.Requests.OldestSeconds != nil {
			seen.Oldest = max(seen.Oldest, time.Duration(*w.Requests.OldestSeconds*float64(time.Second)))
		}
		seen.Charged += w.KV.ChargedTokens
		seen.Served += w.Served
		seen.Failed += w.Failed
		seen.Tokens += w.Tokens
		seen.Speed = max(seen.Speed, w.TokensPerSecond)
		seen.TTFT = max(seen.TTFT, w.TTFTSeconds)
		if c := w.KV.CapacityTokens; c != nil {
			seen.Free = *c - w.KV.ChargedTokens - w.KV.ElsewhereTokens - w.KV.ForeignTokens
		}
	}
}

// moved notes when a worker last made progress: tokens, requests ended, or
// prompt tokens computed; or had nothing to make progress on.
func (s *Supervisor) moved(m *member, seen core.Seen, now time.Time) progress {
	sum := seen.Tokens + seen.Served + seen.Failed
	for _, d := range s.gate.living() {
		if w := findWorker(d.state, m.id); w != nil && w.Requests.PrefillTokens != nil {
			sum -= *w.Requests.PrefillTokens
		}
	}
	p := m.progress
	if p.sum != sum || p.generation != seen.Generation {
		p = progress{generation: seen.Generation, sum: sum, tokens: now, since: now}
	}
	if seen.InFlight == 0 {
		p.since = now
	}
	p.busy = seen.InFlight > 0
	m.progress = p
	return p
}

// tendProbes keeps one probe a running worker, and none for others.
func (s *Supervisor) tendProbes() {
	for id, m := range s.fleet.members {
		if m.probe == nil {
			continue
		}
		if url, generation, ok := s.probed(id); !ok || m.probe.url != url || m.probe.generation != generation {
			m.probe.cancel()
			m.probe = nil
		}
	}
	for id := range s.plan.kinds {
		if url, generation, ok := s.probed(id); ok && s.fleet.at(id).probe == nil {
			s.probe(id, url, generation)
		}
	}
}

// probed says where a worker is to be probed. A static worker's probe is that
// of its address, whatever the generation.
func (s *Supervisor) probed(id string) (url string, generation uint64, ok bool) {
	kind, configured := s.plan.kinds[id]
	if kind.driver == "static" {
		return kind.config.URL, 0, true
	}
	i := s.fleet.of(id).instance
	return i.URL, i.Generation, configured && i.Running
}

func (s *Supervisor) probe(id, url string, generation uint64) {
	ctx, cancel := context.WithCancel(s.ctx)
	p := &probe{url: url, key: s.plan.kinds[id].config.APIKey.Reveal(), generation: generation, cancel: cancel, began: s.clock.Now()}
	s.fleet.at(id).probe = p
	s.group.Go(func() {
		watchHealth(ctx, s.client, url, p.key, func(f finding) {
			s.tell(func() {
				p.healthy, p.unhealthy = f.healthy, f.why
				if f.healthy {
					p.last = s.clock.Now()
				} else {
					p.adapting.tried = time.Time{} // what comes back may be another process
				}
				if f.ours != nil {
					p.ours = f.ours
				}
				if f.models != nil {
					p.models = f.models
				}
			})
		})
	})
}

package plugins

import (
	"slices"
	"sync"
	"time"
)

// Stats is what `roundhouse plugins` shows of one plugin.
type Stats struct {
	Name      string        `json:"name"`
	Kind      string        `json:"kind"`
	State     string        `json:"state"`    // "running", "starting", "failed"
	Version   string        `json:"version"`  // the plugin's own
	Protocol  int           `json:"protocol"` // of plugins/proto
	PID       int           `json:"pid"`
	Starts    int           `json:"starts"`
	Breaker   string        `json:"breaker"`
	Calls     int64         `json:"calls"`
	Failures  int64         `json:"failures"`
	P50       time.Duration `json:"p50"`
	P99       time.Duration `json:"p99"`
	LastError string        `json:"last_error"`
}

// recorder keeps counts and the last calls' durations.
type recorder struct {
	mu       sync.Mutex
	calls    int64
	failures int64
	last     [1024]time.Duration // a ring
	lastErr  error
}

func (r *recorder) add(d time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[r.calls%int64(len(r.last))] = d
	r.calls++
	if err != nil {
		r.failures++
		r.lastErr = err
	}
}

// percentiles returns the median and the 99th of the calls in the ring.
func (r *recorder) percentiles() (p50, p99 time.Duration) {
	n := int(min(r.calls, int64(len(r.last))))
	if n == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(r.last[:n]))
	return sorted[(n-1)*50/100], sorted[(n-1)*99/100]
}

// Stats reads what has become of the plugin so far.
func (p *Plugin) Stats() Stats {
	p.stats.mu.Lock()
	s := Stats{Name: p.spec.Name, Kind: p.spec.Kind, Calls: p.stats.calls, Failures: p.stats.failures}
	s.P50, s.P99 = p.stats.percentiles()
	if p.stats.lastErr != nil {
		s.LastError = p.stats.lastErr.Error()
	}
	p.stats.mu.Unlock()

	p.mu.Lock()
	defer p.mu.Unlock()
	s.Starts, s.Breaker = p.starts, p.breaker.state(time.Now())
	switch {
	case p.running != nil:
		s.State, s.PID = "running", p.running.pid()
		s.Protocol, s.Version = p.running.version, p.running.about.GetVersion()
	case p.lastErr != nil:
		s.State, s.LastError = "failed", p.lastErr.Error()
	default:
		s.State = "starting"
	}
	return s
}

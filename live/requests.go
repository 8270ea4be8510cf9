package live

import (
	"cmp"
	"context"
	"slices"
	"time"

	"roundhouse/balancer/control"
)

// mostRequests is how many requests one message lists.
const mostRequests = 500

// spoken is how far a request's answer was, and when.
type spoken struct {
	at     time.Time
	tokens int64
	speed  *float64
}

func (h *Hub) wantRequests() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for v := range h.viewers {
		if v.requests != "" {
			return true
		}
	}
	return false
}

// inFlight lists what is in flight with its speed since the last look, the oldest first.
func (h *Hub) inFlight(ctx context.Context) []control.InFlight {
	list := h.options.Source.InFlight(ctx)
	next := make(map[string]spoken, len(list))
	now := time.Now()
	for i := range list {
		f := &list[i]
		key := f.Door + "/" + f.ID
		was, known := h.speeds[key]
		s := spoken{at: now, tokens: f.Output}
		if seconds := now.Sub(was.at).Seconds(); known && seconds < 0.5 {
			s = was
		} else if known && f.Output > 0 {
			speed := round(float64(f.Output-was.tokens) / seconds)
			s.speed = &speed
		}
		f.TokensPerSecond = s.speed
		next[key] = s
	}
	h.speeds = next
	slices.SortFunc(list, func(a, b control.InFlight) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// chosen are the requests of a pool, or of a worker, or all.
func chosen(list []control.InFlight, of string, at time.Time) LiveRequests {
	out := LiveRequests{At: at, Requests: []control.InFlight{}}
	for _, f := range list {
		if of != "all" && f.Pool != of && f.Worker != of {
			continue
		}
		out.Total++
		if f.State == "queued" || f.State == "parked" {
			out.Waiting++
		}
		if len(out.Requests) < mostRequests {
			out.Requests = append(out.Requests, f)
		}
	}
	return out
}

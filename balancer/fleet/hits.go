package fleet

import (
	"math"
	"sync"
	"sync/atomic"
)

// hits measures by a worker's own counters how much of what the prefix table
// believes of it is so, for workers whose answers do not say it. The counters
// run over all of the worker's traffic, so that a measurement takes a while: it
// ends when what this door has had computed there since its beginning is many
// times what was under way at its two ends.
type hits struct {
	told atomic.Bool // answers say what was cached: nothing needs to be measured

	mu       sync.Mutex
	open     bool
	queries  float64 // the counters at the beginning
	hits     float64
	pending  int64 // prompt tokens that were under way then
	prompt   int64 // of this door's requests computed since
	believed int64 // of those, cached by the prefix table
	requests int64 // of which anything was believed
}

// What a measurement needs.
const (
	measureEdges  = 6    // times what was under way at its ends
	measureLeast  = 1024 // tokens believed cached
	measureMargin = 0.25 // the counters may be so far from this door's own count and still be of its traffic alone
)

// Came counts a prompt that the worker has computed.
func (h *hits) Came(prompt, believed int64) {
	if h.told.Load() {
		return
	}
	h.mu.Lock()
	h.prompt += prompt
	h.believed += believed
	if believed > 0 {
		h.requests++
	}
	h.mu.Unlock()
}

// Tells notes whether answers of the worker say what was cached.
func (h *hits) Tells(cached int64) {
	if cached >= 0 && !h.told.Load() {
		h.told.Store(true)
	}
}

// forget begins anew, with another process.
func (h *hits) forget() {
	h.told.Store(false)
	h.mu.Lock()
	h.open = false
	h.mu.Unlock()
}

// measured is what a measurement has found.
type measured struct {
	believed, cached, requests int64
	atMost                     bool // other traffic may have been among it
}

// count takes the counters as one scrape found them, with what was under way,
// and reports what was measured when a measurement has ended. block is how many
// tokens one count may stand for: 1, but for engines of old that counted blocks.
func (h *hits) count(queries, found float64, block int64, pending int64) (m measured, ok bool) {
	if h.told.Load() || math.IsNaN(queries) || math.IsNaN(found) {
		return m, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.open || queries < h.queries || found < h.hits {
		h.begin(queries, found, pending)
		return m, false
	}
	if h.believed < measureLeast || h.prompt < measureEdges*(h.pending+pending) {
		return m, false
	}
	asked, hit, own := queries-h.queries, found-h.hits, float64(h.prompt)
	m = measured{believed: h.believed, requests: h.requests, atMost: true}
	for _, unit := range [...]float64{1, float64(max(block, 1))} {
		m.cached = int64(hit * unit)
		if math.Abs(asked*unit-own) <= measureMargin*own {
			m.atMost = false
			break
		}
	}
	h.begin(queries, found, pending)
	return m, true
}

func (h *hits) begin(queries, found float64, pending int64) {
	h.open, h.queries, h.hits, h.pending = true, queries, found, pending
	h.prompt, h.believed, h.requests = 0, 0, 0
}

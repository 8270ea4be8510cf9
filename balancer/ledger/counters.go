package ledger

import (
	"math"
	"sync"
	"sync/atomic"
)

// Hits measures by a worker's own counters how much of what the prefix table
// believes of it is so, for workers whose answers do not say it. The counters
// run over all of the worker's traffic, so that a measurement takes a while: it
// ends when what this door has had computed there since its beginning is many
// times what was under way at its two ends.
type Hits struct {
	told atomic.Bool // answers say what was cached: nothing needs to be Measured

	mu       sync.Mutex
	open     bool
	queries  float64 // the counters at the beginning
	hits     float64
	last     float64 // queries, at the last look
	pending  int64   // prompt tokens that were under way then
	prompt   int64   // of this door's requests computed since
	believed int64   // of those, cached by the prefix table
	requests int64   // of which anything was believed
}

// What a measurement needs.
const (
	measureEdges  = 6    // times what was under way at its ends
	measureLong   = 4    // times as much, where the counters are behind
	measureLeast  = 1024 // tokens believed cached
	measureMargin = 0.25 // the counters may be so far from this door's own count and still be of its traffic alone
)

// Came counts a prompt that the worker has computed.
func (h *Hits) Came(prompt, believed int64) {
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
func (h *Hits) Tells(cached int64) {
	if cached >= 0 && !h.told.Load() {
		h.told.Store(true)
	}
}

// Forget begins anew, with another process.
func (h *Hits) Forget() {
	h.told.Store(false)
	h.mu.Lock()
	h.open = false
	h.mu.Unlock()
}

// Measured is what a measurement has found: of so many tokens that were believed cached,
// for so many requests, so many were.
type Measured struct {
	Believed, Cached, Requests int64
	AtMost                     bool // other traffic may have been among it
}

// Count takes the counters as one scrape found them, with what was under way,
// and reports what was measured when a measurement has ended. block is how many
// tokens one count may stand for: 1, but for engines of old that counted blocks.
func (h *Hits) Count(queries, found float64, block int64, pending int64) (m Measured, ok bool) {
	if h.told.Load() || math.IsNaN(queries) || math.IsNaN(found) {
		return m, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	old := queries == h.last && queries > 0 // the figures of the last look: nobody knows since when
	h.last = queries
	if !h.open || queries < h.queries || found < h.hits {
		h.begin(queries, found, pending)
		return m, false
	}
	if old || h.believed < measureLeast || h.prompt < measureEdges*(h.pending+pending) {
		return m, false
	}
	asked, hit, own := queries-h.queries, found-h.hits, float64(h.prompt)
	m = Measured{Believed: h.believed, Requests: h.requests, AtMost: true, Cached: int64(hit * float64(max(block, 1)))}
	behind := true // the counters are
	for _, unit := range [...]float64{1, float64(max(block, 1))} {
		behind = behind && asked*unit < (1-measureMargin)*own
		if math.Abs(asked*unit-own) <= measureMargin*own {
			// Of nearly the same requests nearly the same share was cached, and of the same
			// number more or less: what is less alone would be believed.
			m.AtMost, m.Cached = false, int64(hit/asked*own)
			break
		}
	}
	if behind && h.prompt < measureLong*measureEdges*(h.pending+pending) {
		return Measured{}, false
	}
	h.begin(queries, found, pending)
	return m, true
}

func (h *Hits) begin(queries, found float64, pending int64) {
	h.open, h.queries, h.hits, h.pending = true, queries, found, pending
	h.prompt, h.believed, h.requests = 0, 0, 0
}

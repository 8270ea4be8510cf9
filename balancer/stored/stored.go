package stored

import (
	"iter"
	"strings"
	"sync"

	"roundhouse/balancer/ledger"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// maxStored is how many stored responses the door knows the workers of.
const maxStored = 65536

// Responses remembers which worker has stored which response.
type Responses struct {
	mu   sync.Mutex
	at   map[string]Entry
	ring []string
	next int
}

// Entry is where a response is stored, and by whose request.
type Entry struct {
	ledger.Try
	Owner string
}

// Put notes where a response is stored; the oldest is forgotten for it.
func (h *Responses) Put(id string, t Entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		h.at, h.ring = map[string]Entry{}, make([]string, maxStored)
	}
	if _, ok := h.at[id]; !ok {
		delete(h.at, h.ring[h.next])
		h.ring[h.next] = id
		h.next = (h.next + 1) % maxStored
	}
	h.at[id] = t
}

// Find reports where a response is stored.
func (h *Responses) Find(id string) (Entry, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.at[id]
	return t, ok
}

// All yields the responses that are known, the oldest first.
func (h *Responses) All() iter.Seq2[string, Entry] {
	return func(yield func(string, Entry) bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i := range h.ring {
			id := h.ring[(h.next+i)%len(h.ring)]
			if t, ok := h.at[id]; ok && !yield(id, t) {
				return
			}
		}
	}
}

// Keep notes the id of a response that the worker may have stored.
func (h *Responses) Keep(path, owner string, data []byte, t ledger.Try) {
	if path != surface.ResponsesPath {
		return
	}
	if v, ok := wire.Field(data, `"id"`); ok && len(v) > 2 && strings.HasPrefix(string(v), `"resp_`) {
		h.Put(string(v[1:len(v)-1]), Entry{t, owner})
	}
}

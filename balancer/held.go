package balancer

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"sync"

	"roundhouse/balancer/ledger"
	"roundhouse/balancer/wire"
)

// maxHeld is how many stored responses the door knows the workers of.
const maxHeld = 65536

// held remembers which worker has stored which response.
type held struct {
	mu   sync.Mutex
	at   map[string]holding
	ring []string
	next int
}

// holding is where a response is stored, and by whose request.
type holding struct {
	ledger.Try
	owner string
}

func (h *held) put(id string, t holding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		h.at, h.ring = map[string]holding{}, make([]string, maxHeld)
	}
	if _, ok := h.at[id]; !ok {
		delete(h.at, h.ring[h.next])
		h.ring[h.next] = id
		h.next = (h.next + 1) % maxHeld
	}
	h.at[id] = t
}

func (h *held) find(id string) (holding, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.at[id]
	return t, ok
}

// keep notes the id of a response that the worker may have stored.
func (h *held) keep(a *asked, data []byte, t ledger.Try) {
	if a.path != responsesPath {
		return
	}
	if v, ok := wire.Field(data, `"id"`); ok && len(v) > 2 && strings.HasPrefix(string(v), `"resp_`) {
		h.put(string(v[1:len(v)-1]), holding{t, a.owner})
	}
}

// readHeld finds the worker that a stored response lies with, and whether it is to be
// told as a stream.
func (x *exchange) readHeld() *failure {
	id, _, _ := strings.Cut(strings.TrimPrefix(x.asked.path, responsePrefix), "/")
	if query, err := url.ParseQuery(x.asked.query); err == nil && x.asked.method == "GET" {
		x.asked.peek.Stream = isTrue(query.Get("stream"))
	}
	return x.goTo(id)
}

// identify notes whose stored responses a request may see: its key's, or, where the
// door asks for no keys, those of whoever shows the same one. It is a digest, so that a
// worker learns no key, and the same at every door.
func (a *asked) identify(k *key, seen *wire.Seen) {
	if a.kind != kindHeld && a.kind != kindPass && a.path != responsesPath {
		return
	}
	shown := string(seen.Key)
	if bearer, ok := cutBearer(string(seen.Authorization)); ok {
		shown = bearer
	}
	switch {
	case k != nil:
		shown = "key " + k.name
	case shown == "":
		return
	default:
		shown = "client " + shown
	}
	sum := sha256.Sum256([]byte(shown))
	a.owner = hex.EncodeToString(sum[:16])
}

// goTo binds the exchange to the worker that has stored a response. What another client
// has stored is not told from what is not there.
func (x *exchange) goTo(id string) *failure {
	gone := notFound("%q is not held by any worker: it never was, or its worker has been restarted since", id)
	t, ok := x.d.held.find(id)
	if !ok || t.owner != x.asked.owner || t.Worker.Generation(x.d.ledger) != t.Generation {
		return gone
	}
	for _, w := range x.v.workers {
		if w.acct == t.Worker {
			x.asked.pool, x.booking.ask.Prefer, x.booking.ask.AnyLength, x.booking.bound = w.pool, w.acct, true, true
			if x.asked.model == "" {
				if m := w.modelList(); len(m) > 0 {
					x.asked.model = m[0]
				}
			}
			return nil
		}
	}
	return gone
}

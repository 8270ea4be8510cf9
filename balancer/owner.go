package balancer

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

	"roundhouse/balancer/keyring"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// readHeld finds the worker that a stored response lies with, and whether it is to be
// told as a stream.
func (x *exchange) readHeld() *surface.Failure {
	id, _, _ := strings.Cut(strings.TrimPrefix(x.asked.path, surface.ResponsePrefix), "/")
	if query, err := url.ParseQuery(x.asked.query); err == nil && x.asked.method == "GET" {
		x.asked.peek.Stream = isTrue(query.Get("stream"))
	}
	return x.goTo(id)
}

// identify notes whose stored responses a request may see: its key's, or, where the
// door asks for no keys, those of whoever shows the same one. It is a digest, so that a
// worker learns no key, and the same at every door.
func (a *asked) identify(k *keyring.Key, seen *wire.Seen) {
	if a.kind == surface.Stored || a.kind == surface.Pass || a.path == surface.ResponsesPath {
		a.owner = ownerOf(k, seen)
	}
}

// ownerOf is a digest of who shows what a request shows.
func ownerOf(k *keyring.Key, seen *wire.Seen) string {
	shown := string(seen.Key)
	if bearer, ok := keyring.CutBearer(string(seen.Authorization)); ok {
		shown = bearer
	}
	switch {
	case k != nil:
		shown = "key " + k.Name
	case shown == "":
		return ""
	default:
		shown = "client " + shown
	}
	sum := sha256.Sum256([]byte(shown))
	return hex.EncodeToString(sum[:16])
}

// goTo binds the exchange to the worker that has stored a response. What another client
// has stored is not told from what is not there.
func (x *exchange) goTo(id string) *surface.Failure {
	gone := surface.NotFound("%q is not held by any worker: it never was, or its worker has been restarted since", id)
	t, ok := x.d.held.Find(id)
	if !ok || t.Owner != x.asked.owner || t.Worker.Generation(x.d.ledger) != t.Generation {
		return gone
	}
	for _, w := range x.v.workers {
		if w.Acct == t.Worker {
			x.asked.pool, x.booking.Ask.Prefer, x.booking.Ask.AnyLength, x.booking.Bound = w.Pool, w.Acct, true, true
			if x.asked.model == "" {
				if m := w.ModelList(); len(m) > 0 {
					x.asked.model = m[0]
				}
			}
			return nil
		}
	}
	return gone
}

package balancer

import (
	"errors"
	"net/url"
	"strings"

	"slices"
	"time"

	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/keyring"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
	"roundhouse/configs/workerid"
)

// readStored finds the worker that a stored response lies with, and whether it is to be
// told as a stream.
func (x *exchange) readStored() *surface.Failure {
	id, _, _ := strings.Cut(strings.TrimPrefix(x.asked.path, surface.ResponsePrefix), "/")
	if query, err := url.ParseQuery(x.asked.query); err == nil && x.asked.method == "GET" {
		x.asked.peek.Stream = wire.IsTrue(query.Get("stream"))
	}
	return x.goTo(id)
}

// goTo binds the exchange to the worker that has stored a response. What another client
// has stored is not told from what is not there.
func (x *exchange) goTo(id string) *surface.Failure {
	gone := surface.NotFound("%q is not held by any worker: it never was, or its worker has been restarted since", id)
	t, ok := x.d.responses.Find(id)
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

// read takes what must be known of a request out of its head and body.
func (x *exchange) read(seen *wire.Seen, k *keyring.Key) *surface.Failure {
	if enc := seen.Encoding; len(enc) > 0 && string(enc) != "identity" {
		return &surface.Failure{Status: 415, Type: "invalid_request_error", Code: "unsupported_encoding", Reason: "bad_request",
			Message: "request bodies must come without Content-Encoding"}
	}
	if f := x.asked.readPriority(string(seen.Priority), k); f != nil {
		return f
	}
	if a := seen.Accept; len(a) > 0 && len(a) < 200 {
		x.asked.accept = string(a)
	}
	switch x.asked.kind {
	case surface.Form:
		if f := x.asked.readForm(seen, x.payload.Body); f != nil {
			return f
		}
		if f := x.asked.find(&x.d.fleet, x.v, x.pass, x.payload.Body, string(seen.Session)); f != nil {
			return f
		}
		if name := x.asked.peek.Model; name != "" && name != x.asked.model {
			return surface.BadRequest("model", "aliases and routes are not served with multipart bodies; ask for %q", x.asked.model)
		}
		return x.asked.permit(k)
	case surface.Stored:
		return x.readStored()
	case surface.Pass:
		return x.reads(seen, k)
	}
	if f := checkType(seen.Type); f != nil {
		return f
	}
	if err := wire.PeekBody(x.payload.Body, &x.asked.peek); err != nil {
		var be *wire.BodyError
		errors.As(err, &be)
		return surface.BadRequest(be.Param, "%s", err.Error())
	}
	if x.asked.peek.Resume {
		return surface.BadRequest("roundhouse_resume", "the field \"roundhouse_resume\" is the door's own")
	}
	if f := x.asked.find(&x.d.fleet, x.v, x.pass, x.payload.Body, string(seen.Session)); f != nil {
		return f
	}
	if x.asked.peek.Session != "" && x.asked.path == surface.ResponsesPath {
		if f := x.goTo(x.asked.peek.Session); f != nil {
			return f
		}
	}
	return x.asked.permit(k)
}

// newExchange begins a request whose head says what was seen.
func (d *common) newExchange(v *snapshot, g *guard, seen *wire.Seen) *exchange {
	x := blank()
	x.d, x.v, x.g = d, v, g
	a := &x.asked
	a.wall = time.Now()
	a.start = int64(a.wall.Sub(d.epoch))
	a.client = v.trusted.client(g.peer(), seen.Forwarded)
	a.id, a.ctype, a.priority = surface.RequestID(seen.RequestID), "application/json", surface.Normal
	x.trace = beginTrace(v.traces, seen)
	return x
}

// enter reads the request, holds it to its key's limits, and enters it among
// those in flight.
func (x *exchange) enter(seen *wire.Seen, k *keyring.Key) *surface.Failure {
	x.asked.key = k
	x.logged = captureOf(&x.d.requests, &x.d.memory, &x.asked, x.payload.Body)
	x.asked.identify(k, seen)
	if f := x.read(seen, k); f != nil {
		return f
	}
	if x.pin != "" {
		if f := x.pinTo(x.pin); f != nil {
			return f
		}
	}
	x.asked.filtered(x.pass)
	if k != nil {
		if f := x.d.usage.Refuse(&k.Cfg, k.Live(), x.asked.wall); f != nil {
			return f
		}
		if f := k.Enter(x.asked.wall); f != nil {
			return f
		}
		prompt, expect := x.asked.estimate()
		x.booking.advance = prompt + expect
		k.Charge(x.booking.advance)
	}
	x.d.live.enlist(x)
	x.g.serve(x)
	x.asked.pool.Retries.Came(x.asked.start)
	return nil
}

// turnAway ends a request that is refused before it was enlisted.
func (x *exchange) turnAway(f *surface.Failure) *surface.Failure {
	x.d.memory.Give(x.payload.Booked)
	x.record.status, x.record.outcome, x.record.code = f.Status, "refused", f.Code
	x.tell()
	x.logged.end(x.d.id, &x.asked, &x.record)
	x.d.past.add(&x.asked, &x.record)
	return f
}

// pinTo binds an exchange to the worker that its sender has named.
func (x *exchange) pinTo(id string) *surface.Failure {
	for _, w := range x.v.workers {
		if w.ID != id {
			continue
		}
		if t := x.asked.target; t != nil && !slices.Contains(t.pools, w.Pool) {
			return surface.BadRequest("model", "pool %q, which the worker %s belongs to, does not serve %q", workerid.Pool(id), id, x.asked.model)
		}
		if s := w.State(&x.d.fleet); s.State != phase.Ready {
			return &surface.Failure{Status: 503, Type: "service_unavailable", Code: "no_worker", Message: "the worker " + id + " takes no requests now: it is " + string(s.State)}
		}
		x.asked.pool, x.booking.Ask.Prefer, x.booking.Ask.AnyLength, x.booking.Bound, x.booking.pinned = w.Pool, w.Acct, true, true, true
		return nil
	}
	return surface.NotFound("there is no worker %q", id)
}

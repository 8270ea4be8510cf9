package balancer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"strings"

	"roundhouse/balancer/keyring"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// readForm takes the model out of a multipart body, which passes as it came.
func (a *asked) readForm(seen *wire.Seen, body []byte) *surface.Failure {
	ctype := string(seen.Type)
	media, params, err := mime.ParseMediaType(ctype)
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" || strings.ContainsAny(ctype, "\r\n") {
		return surface.BadRequest("", "the content type must be multipart/form-data with a boundary")
	}
	a.ctype = ctype
	form := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for range 64 {
		part, err := form.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return surface.BadRequest("", "the multipart body is malformed")
		}
		name := part.FormName()
		if name != "model" && name != "stream" {
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, 256))
		switch {
		case err != nil:
			return surface.BadRequest(name, "the multipart body is malformed")
		case name == "stream":
			a.peek.Stream = isTrue(string(value))
		case a.peek.Model != "":
			return surface.BadRequest("model", "the field \"model\" is given twice")
		default:
			a.peek.Model = string(value)
		}
	}
	return nil
}

// isTrue reports whether a word of a form or a query says yes, as engines read it. The
// engine itself is the judge of words that say neither.
func isTrue(word string) bool {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "true", "1", "yes", "y", "on", "t":
		return true
	}
	return false
}

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
		return x.readHeld()
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

// checkType accepts JSON in UTF-8, and a body that does not say what it is.
func checkType(given []byte) *surface.Failure {
	if len(given) == 0 || string(given) == "application/json" {
		return nil
	}
	ct := strings.ToLower(string(given))
	if !strings.HasPrefix(ct, "application/json") {
		return surface.BadRequest("", "the content type must be application/json")
	}
	if strings.Contains(ct, "charset=") && !strings.Contains(ct, "utf-8") {
		return surface.BadRequest("", "the body must be UTF-8")
	}
	return nil
}

// permit checks that the key may use what was asked for, where it is served; the answer does not
// tell a model that is hidden from one that is not there.
func (a *asked) permit(k *keyring.Key) *surface.Failure {
	if k != nil && !k.AllowsPool(a.pool.Name) {
		return surface.UnknownModel(a.peek.Model)
	}
	if k == nil || k.Allows(a.model) && a.route == nil || a.route != nil && (k.Allows(a.route.cfg.Name) || k.Allows(a.model)) {
		return nil
	}
	return surface.UnknownModel(a.peek.Model)
}

func (a *asked) readPriority(asked string, k *keyring.Key) *surface.Failure {
	if k != nil && k.Cfg.Priority != "" {
		a.priority, _ = surface.PriorityOf(k.Cfg.Priority)
	}
	if asked == "" {
		return nil
	}
	p, ok := surface.PriorityOf(asked)
	if !ok {
		return surface.BadRequest("x-roundhouse-priority", "x-roundhouse-priority must be high, normal or low")
	}
	a.priority = max(a.priority, p)
	return nil
}

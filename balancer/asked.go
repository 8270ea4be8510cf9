package balancer

import (
	"net/netip"
	"time"

	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strings"

	"roundhouse/balancer/extend"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/keyring"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/metrics"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// asked is a client's request: the content of its head and body, and the pool
// and model that it leads to by the worker set in force. It is written while the request is read
// and constant from then on.
type asked struct {
	id     string
	wall   time.Time
	start  int64 // by the door's clock
	client netip.Addr
	method string
	path   string
	query  string
	kind   surface.Kind
	ctype  string // of a body that is not JSON
	accept string
	http10 bool

	peek     wire.Peek
	key      *keyring.Key
	priority int
	route    *route
	target   *serving
	pool     *fleet.Pool
	within   *fleet.Pool // it must be served by, whatever its model; nil: any
	renamed  bool        // model is not the client's word for it, but a gateway's
	flow     string      // it shares room with where it has no key
	model    string      // as it is sent to the worker
	session  string
	trial    bool   // model is on trial in its route
	owner    string // whose stored responses it may see; empty: nobody's in particular, or none are asked for
}

// keepsName reports whether the answer is to carry the name that the client
// asked for in place of the target's.
func (a *asked) keepsName() bool {
	return (a.renamed || a.route != nil && a.route.cfg.KeepName) && a.peek.Model != "" && a.peek.Model != a.model
}

// streams reports whether the answer is to stream.
func (a *asked) streams() bool {
	return a.peek.Stream && (a.kind == surface.Chat || a.kind == surface.Text || a.kind == surface.Generation || a.kind == surface.Form || a.kind == surface.Stored)
}

// estimate is the tokens that a request is charged with before its answer has
// said.
func (a *asked) estimate() (prompt, expect int64) {
	return a.pool.Learn(a.model).Estimate(a.size(), a.peek.MaxTokens)
}

// size is the size of the request's prompt by its parts.
func (a *asked) size() ledger.Size {
	p := &a.peek
	return ledger.Size{Text: p.PromptBytes + p.Extra.To - p.Extra.From, Media: p.Media, Pixels: p.Pixels, IDs: p.PromptIDs}
}

// promptLen is the bytes of the prompt that are hashed, pictures and token ids
// included.
func (a *asked) promptLen() int { return a.peek.Prompt.To - a.peek.Prompt.From }

// labels are the names that the request is counted by. A model or a route that
// is not configured is "other".
func (a *asked) labels() metrics.Labels {
	k := metrics.Labels{Pool: a.pool.Name, Model: a.model, Route: "other"}
	if a.target == nil {
		k.Model = "other"
	}
	if a.route != nil {
		k.Route = a.route.cfg.Name
	}
	return k
}

// find resolves the model that a client asked for into a target and a pool.
func (a *asked) find(f *fleet.Fleet, v *snapshot, pass *extend.Pass, body []byte, sessionHeader string) *surface.Failure {
	name := a.peek.Model
	if pass != nil && pass.Route != "" {
		name = pass.Route
	}
	if a.within != nil {
		a.findWithin(f, v, name, body, sessionHeader)
		return nil
	}
	if name == "" {
		if len(v.models) != 1 {
			if p := v.unsaid(); p != nil {
				return surface.NotSaid(p.Name)
			}
			return surface.BadRequest("model", "the field \"model\" is missing")
		}
		for only := range v.models {
			name = only
		}
	}
	r := v.routes[name]
	if r == nil {
		a.target = v.models[name]
		a.model = name
		return a.pickPool(f, v, name)
	}
	a.route = r
	a.session = r.sessionOf(a, body, sessionHeader)
	usable := func(model string) bool {
		t := v.models[model]
		return t != nil && t.alive(f, a.key) != nil
	}
	if a.tries(r, body, usable) {
		a.model = r.cfg.Canary.Model
		a.target = v.models[a.model]
		return a.pickPool(f, v, name)
	}
	if i := r.choose(a.session, usable); i >= 0 {
		a.model = r.cfg.Targets[i].Model
		a.target = v.models[a.model]
		return a.pickPool(f, v, name)
	}
	return a.fallback(f, v, r, name)
}

// findWithin resolves a model in a pool that was chosen before. Its workers are the
// judges of a name that is neither a route nor theirs: an adapter may have been loaded
// that nobody was told of.
func (a *asked) findWithin(f *fleet.Fleet, v *snapshot, name string, body []byte, sessionHeader string) {
	a.pool, a.model = a.within, name
	if r := v.routes[name]; r != nil {
		a.route = r
		a.session = r.sessionOf(a, body, sessionHeader)
		there := func(model string) bool {
			t := v.models[model]
			return t != nil && slices.Contains(t.pools, a.within) && a.within.Serves(f, model)
		}
		if a.tries(r, body, there) {
			a.model = r.cfg.Canary.Model
		} else if i := r.choose(a.session, there); i >= 0 {
			a.model = r.cfg.Targets[i].Model
		}
	}
	if known := a.pool.Models(); a.model == "" && len(known) > 0 {
		a.model = known[0]
	}
	a.target = v.models[a.model]
}

// fallback serves a route none of whose targets can.
func (a *asked) fallback(f *fleet.Fleet, v *snapshot, r *route, name string) *surface.Failure {
	if p := v.byName[r.cfg.Fallback]; p != nil {
		for model, t := range v.models {
			for _, of := range t.pools {
				if of == p {
					a.model, a.target, a.pool = model, t, p
					return nil
				}
			}
		}
	}
	if t := v.models[r.cfg.Fallback]; t != nil {
		a.model, a.target = r.cfg.Fallback, t
		return a.pickPool(f, v, name)
	}
	// No target can serve now; a known target may be parked at.
	for _, t := range r.cfg.Targets {
		if m := v.models[t.Model]; m != nil && t.Weight > 0 {
			a.model, a.target = t.Model, m
			return a.pickPool(f, v, name)
		}
	}
	return v.unknown(name)
}

// pickPool takes the first pool of the target that is alive.
func (a *asked) pickPool(f *fleet.Fleet, v *snapshot, name string) *surface.Failure {
	if a.target == nil {
		return v.unknown(name)
	}
	if a.pool = a.target.alive(f, a.key); a.pool == nil {
		a.pool = a.target.first(a.key)
	}
	return nil
}

// sessionOf is the key by which the requests of one session stick together.
func (r *route) sessionOf(a *asked, body []byte, header string) string {
	switch r.cfg.Sticky {
	case "session":
		return header
	case "user":
		return a.peek.User
	case "prefix":
		if p := a.peek.Prompt; p.Set() {
			text := p.Of(body)
			return string(text[:min(len(text), 1024)])
		}
	}
	return ""
}

// filtered takes the priority over that a filter has set.
func (a *asked) filtered(pass *extend.Pass) {
	if pass == nil {
		return
	}
	if p, ok := surface.PriorityOf(pass.Priority); ok {
		a.priority = p
	}
}

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
			a.peek.Stream = wire.IsTrue(string(value))
		case a.peek.Model != "":
			return surface.BadRequest("model", "the field \"model\" is given twice")
		default:
			a.peek.Model = string(value)
		}
	}
	return nil
}

// identify notes whose stored responses a request may see: its key's, or, where the
// door asks for no keys, those of whoever shows the same one. It is a digest, so that a
// worker learns no key, and the same at every door.
func (a *asked) identify(k *keyring.Key, seen *wire.Seen) {
	if a.kind == surface.Stored || a.kind == surface.Pass || a.path == surface.ResponsesPath {
		a.owner = ownerOf(k, seen)
	}
}

// ownerOf is a digest of the credentials that a request shows.
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

// checkType accepts JSON in UTF-8, and a body without a type.
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

// permit checks that the key may use the model, where it is served; the answer does not
// tell a hidden model from an absent model.
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

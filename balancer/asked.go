package balancer

import (
	"net/netip"
	"time"

	"roundhouse/balancer/fleet"
	"roundhouse/balancer/keyring"
	"roundhouse/balancer/ledger"
	"roundhouse/balancer/metrics"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// asked is what a client wants: what its request's head and body say, and where
// that leads by the worker set in force. It is written while the request is read
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
	target   *target
	pool     *fleet.Pool
	within   *fleet.Pool // it must be served by, whatever its model; nil: any
	renamed  bool        // model is not the client's word for it, but a gateway's
	flow     string      // it shares room with where it has no key
	model    string      // as it is sent to the worker
	session  string
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

// size is what the request's prompt is made of.
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

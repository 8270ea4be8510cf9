package balancer

import (
	"time"

	"roundhouse/balancer/wire"
)

// asked is what a client wants: what its request's head and body say, and where
// that leads by the worker set in force. It is written while the request is read
// and constant from then on.
type asked struct {
	id     string
	wall   time.Time
	start  int64 // by the door's clock
	method string
	path   string
	query  string
	kind   kind
	ctype  string // of a body that is not JSON
	accept string
	http10 bool

	peek     wire.Peek
	key      *key
	priority int
	route    *route
	target   *target
	pool     *pool
	model    string // as it is sent to the worker
	session  string
}

// streams reports whether the answer is to stream.
func (a *asked) streams() bool {
	return a.peek.Stream && (a.kind == kindChat || a.kind == kindText || a.kind == kindGen)
}

// estimate is the tokens that a request is charged with before its answer has
// said.
func (a *asked) estimate() (prompt, expect int64) {
	return a.pool.learn(a.model).Estimate(a.peek.PromptBytes, a.peek.MaxTokens)
}

// labels are the names that the request is counted by. A model or a route that
// is not configured is "other".
func (a *asked) labels() seriesKey {
	k := seriesKey{pool: a.pool.name, model: a.model, route: "other"}
	if a.target == nil {
		k.model = "other"
	}
	if a.route != nil {
		k.route = a.route.cfg.Name
	}
	return k
}

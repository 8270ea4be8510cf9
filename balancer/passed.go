package balancer

import (
	"errors"
	"log"
	"net/http"
	"slices"
	"strings"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/fleet"
	"roundhouse/balancer/keyring"
	"roundhouse/balancer/pass"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
	"roundhouse/configs"
)

// outward is what requests that pass through have of the way to the workers.
type outward struct {
	transport *http.Transport
	loads     pass.Loads
	log       *log.Logger // swallows what would hold parts of requests
}

// passing is one request that passes through: an exchange whose body and answer stream
// between two connections of net/http.
type passing struct {
	to     *outward
	x      *exchange
	path   pass.Path
	said   pass.Said
	spool  *pass.Spool
	upload *pass.Upload
	in     *http.Request
	out    http.ResponseWriter
	at     string // the worker whose load it counts in
	broke  error  // of the answer's body
	began  bool   // the answer's head was given to the client
}

// enter reads what must be known of the request, and enters it among those in flight.
func (p *passing) enter(seen *wire.Seen) *surface.Failure {
	x, r := p.x, p.in
	path, ok := pass.Find(x.asked.path)
	if !ok {
		return surface.NotFound("%s is not served here", x.asked.path)
	}
	p.path = path
	if !path.Takes(r.Method) {
		return surface.NotTaken("", path.Methods)
	}
	k, f := x.v.admit(seen.Authorization, seen.Key)
	if f != nil && !x.g.inside() {
		return f
	}
	if path.Socket != (seen.Upgrade != nil && strings.EqualFold(string(seen.Upgrade), "websocket")) {
		return surface.BadRequest("", "%s is opened as a websocket, and no other path is", pass.RealtimePath)
	}
	if f := p.hold(); f != nil {
		return f
	}
	if x.v.ext != nil {
		if k, f = x.filter(r.RemoteAddr, eachField(r.Header), k); f != nil {
			return f
		}
		p.spool.Head = x.payload.Body
	}
	x.pin = x.g.pinned(r.Header.Get(pinField))
	return x.enter(seen, k)
}

// eachField goes over the fields of a head.
func eachField(h http.Header) func(yield func(name, value string) bool) {
	return func(yield func(name, value string) bool) {
		for name, values := range h {
			for _, value := range values {
				if !strings.Contains(name, "_") && !yield(name, value) {
					return
				}
			}
		}
	}
}

// hold reads the beginning of the body, or where filters are to see it all of it.
func (p *passing) hold() *surface.Failure {
	x, r := p.x, p.in
	most := int64(pass.Begin)
	if x.v.ext != nil {
		most = x.g.limits.body
	}
	limit := int64(x.v.set.Door.Limits.Upload)
	if r.ContentLength > limit {
		return tooLong(limit)
	}
	booked := most
	if r.ContentLength >= 0 {
		booked = min(booked, r.ContentLength)
	}
	if !x.d.book(booked) {
		return noMemory()
	}
	x.payload.Booked = booked
	p.upload = &pass.Upload{Body: http.MaxBytesReader(nil, r.Body, limit), Ctl: http.NewResponseController(p.out), Idle: x.g.limits.bodyIdle}
	var err error
	if p.spool, err = pass.Take(p.upload, int(most)); err != nil {
		return p.unread(err)
	}
	if x.v.ext != nil && !p.spool.Whole {
		return tooLong(most)
	}
	x.payload.Body = p.spool.Head
	return nil
}

func tooLong(limit int64) *surface.Failure {
	return &surface.Failure{Status: 413, Type: "invalid_request_error", Code: "body_too_long", Reason: "bad_request", Message: "the body is longer than " + configs.Size(limit).String()}
}

// unread is what is wrong where the client's body does not come.
func (p *passing) unread(err error) *surface.Failure {
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return tooLong(long.Limit)
	case conn.TimedOut(err):
		return &surface.Failure{Status: 408, Type: "invalid_request_error", Code: "request_timeout", Reason: "bad_request", Message: "the request did not arrive in time"}
	}
	return surface.BadRequest("", "the request ended before it was whole")
}

// read takes what the request says of itself, and finds the pool.
func (p *passing) read(seen *wire.Seen, k *keyring.Key) *surface.Failure {
	x := p.x
	x.asked.ctype = string(seen.Type)
	if p.path.Job == pass.Of {
		return x.goTo(p.path.ID)
	}
	p.said = pass.Said{N: 1, Model: p.in.URL.Query().Get("model")}
	if p.in.Method == "POST" {
		said, err := pass.Read(x.asked.ctype, p.spool.Head, p.spool.Whole)
		if err != nil {
			return surface.BadRequest("", "%s", err.Error())
		}
		p.said = said
	}
	x.asked.peek.Model = p.said.Model
	if f := x.asked.findPass(&x.d.fleet, x.v, &p.path); f != nil {
		return f
	}
	return x.asked.permit(k)
}

// findPass finds a pool with a task for the path, by the model if one is named.
func (a *asked) findPass(f *fleet.Fleet, v *snapshot, path *pass.Path) *surface.Failure {
	name := a.peek.Model
	var fits []*fleet.Pool
	for i, p := range v.pools {
		if path.Serves(v.set.Pools[i].Task) {
			fits = append(fits, p)
		}
	}
	if name == "" {
		if len(fits) != 1 {
			return surface.BadRequest("model", "the field \"model\" is missing, or stands behind more than %s of other fields; put it first", configs.Size(pass.Begin).String())
		}
		a.pool = fits[0]
		if m := a.pool.Models(); len(m) > 0 {
			a.model = m[0]
		}
		a.target = v.models[a.model]
		return nil
	}
	if v.routes[name] != nil {
		return surface.BadRequest("model", "%q is a route; a body that passes through is not changed, so ask for a model", name)
	}
	a.model, a.target = name, v.models[name]
	if a.target == nil {
		return v.unknown(name)
	}
	for _, p := range a.target.pools {
		task := v.set.Pools[slices.Index(v.pools, p)].Task
		if !path.Serves(task) && (task != "" || surface.KindOf(a.path) != surface.Form) {
			continue
		}
		if a.pool == nil || a.key.AllowsPool(p.Name) && (!a.key.AllowsPool(a.pool.Name) || !a.pool.Alive(f) && p.Alive(f)) {
			a.pool = p
		}
	}
	if a.pool == nil {
		return surface.BadRequest("model", "the model %q does not serve %s", name, a.path)
	}
	return nil
}

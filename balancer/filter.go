package balancer

import (
	"bytes"
	"errors"

	"github.com/valyala/fasthttp"

	"roundhouse/balancer/extend"
	"roundhouse/balancer/keyring"
	"roundhouse/balancer/surface"
)

// errFiltered ends a stream whose filter failed and must not be passed by.
var errFiltered = errors.New("a filter that rewrites answers failed")

var filterFailed = &surface.Failure{Status: 503, Type: "service_unavailable", Code: "filter_failed", Message: "a filter that rewrites answers is not available"}

// filtered shows a request that fasthttp has read to the filters.
func (x *exchange) filtered(ctx *fasthttp.RequestCtx, k *keyring.Key) (*keyring.Key, *surface.Failure) {
	if x.v.ext == nil {
		return k, nil
	}
	k, f := x.filter(ctx.RemoteAddr().String(), func(yield func(name, value string) bool) {
		for name, value := range ctx.Request.Header.All() {
			if bytes.IndexByte(name, '_') < 0 && !yield(string(name), string(value)) {
				return
			}
		}
	}, k)
	if f == nil && x.pass != nil && x.pass.Body != nil {
		ctx.Request.SetBody(x.payload.Body)
		x.payload.Body = ctx.Request.Body()
	}
	return k, f
}

// filter shows the request to the filters, takes over what they changed, and
// returns the key that it is accounted to.
func (x *exchange) filter(client string, headers func(yield func(name, value string) bool), k *keyring.Key) (*keyring.Key, *surface.Failure) {
	pass, refusal := x.v.ext.Begin(&extend.Request{ID: x.asked.id, Method: x.asked.method, Path: x.asked.path, Client: client, Body: x.payload.Body, Headers: headers})
	if refusal != nil {
		return k, &surface.Failure{Status: refusal.Status, Type: refusal.Type, Code: "filtered", Message: refusal.Message, Reason: "bad_request"}
	}
	if x.pass = pass; pass == nil {
		return k, nil
	}
	if pass.Body != nil {
		if more := int64(len(pass.Body) - len(x.payload.Body)); more > 0 {
			if !x.d.book(more) {
				return k, noMemory()
			}
			x.payload.Booked += more
		}
		x.payload.Body = pass.Body
	}
	if pass.Key != "" && (k == nil || k.Name != pass.Key) {
		k = x.v.keys.Named(pass.Key)
	}
	return k, nil
}

func noMemory() *surface.Failure {
	return &surface.Failure{Status: 503, Type: "service_unavailable", Code: "memory", Reason: "memory", RetryAfter: 1,
		Message: "the door holds as many bodies as it may; try again"}
}

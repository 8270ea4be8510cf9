package balancer

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/surface"
	"roundhouse/configs/workerid"
)

// inner is the door's end of a connection that it has made to itself, for requests that
// come by its private socket or its admin API: whoever may ask there needs no key, and
// may name the worker.
type inner struct{ *net.UnixConn }

// inside reports whether a request comes from the door itself.
func (g *guard) inside() bool {
	_, ok := g.Conn.(inner)
	return ok
}

// pinField names the worker that a request from inside must go to.
const pinField = "X-Roundhouse-Worker"

// pinned is the worker that a request from inside must begin at; empty: any.
func (g *guard) pinned(said string) string {
	if !g.inside() {
		return ""
	}
	return said
}

// serveTry hands what comes below /try/ to the door as a request like any other: the
// same checks and bounds, the same queue and books. Its priority is low.
func (d *Door) serveTry() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "door"
			r.Out.URL.Path = "/" + strings.TrimPrefix(r.In.URL.Path, "/try/")
			r.Out.URL.RawPath = ""
			r.Out.Host = "door"
			for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "Origin", "X-Forwarded-For", "Accept-Encoding"} {
				r.Out.Header.Del(name)
			}
			r.Out.Header.Set("X-Roundhouse-Priority", "low")
		},
		Transport:     &http.Transport{DialContext: d.dialSelf, DisableKeepAlives: true, DisableCompression: true},
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "the door gave no answer: "+err.Error(), http.StatusBadGateway)
		},
	}
}

// dialSelf makes a connection to this door that nobody else can reach.
func (d *Door) dialSelf(context.Context, string, string) (net.Conn, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs, err := unixConn(ends[0])
	if err != nil {
		unix.Close(ends[1])
		return nil, err
	}
	ours, err := unixConn(ends[1])
	if err != nil {
		theirs.Close()
		return nil, err
	}
	g := d.guardOf(inner{ours}, nil)
	d.conns.add(g)
	go d.serveForeign(g)
	return theirs, nil
}

// unixConn makes a connection of a descriptor, which is then the connection's.
func unixConn(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "self")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
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
		if s := w.View(&x.d.fleet); s.State != phase.Ready {
			return &surface.Failure{Status: 503, Type: "service_unavailable", Code: "no_worker", Message: "the worker " + id + " takes no requests now: it is " + string(s.State)}
		}
		x.asked.pool, x.booking.Ask.Prefer, x.booking.Ask.AnyLength, x.booking.Bound, x.booking.pinned = w.Pool, w.Acct, true, true, true
		return nil
	}
	return surface.NotFound("there is no worker %q", id)
}

// unpin lets a stream that has begun go on at any worker.
func (b *booking) unpin() {
	if b.pinned {
		b.Ask.Prefer, b.Bound, b.pinned = nil, false, false
	}
}

package balancer

import (
	"context"
	"log"
	"net"
	"net/http"

	"strings"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/pass"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// side serves, on net/http, the requests whose bodies are not held: those that pass
// through. Their connections leave fasthttp before a byte of the request was read, and
// end with the answer, so that the next request is looked at anew.
type side struct {
	d       *common
	conns   *pass.Listener
	server  *http.Server
	out     outward
	batches *batches
}

func newSide(d *common, b *batches) *side {
	s := &side{d: d, conns: pass.NewListener(), batches: b}
	s.out.log = log.New(discard{}, "", 0)
	s.out.transport = &http.Transport{
		DialContext:         (&net.Dialer{Timeout: conn.DialWithin}).DialContext,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: conn.IdleFor,
		WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10,
	}
	s.server = &http.Server{
		Handler:        http.HandlerFunc(s.serve),
		ErrorLog:       s.out.log,
		MaxHeaderBytes: 1 << 20, // a guard's limit holds first
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, guardKey{}, c.(aside).guard)
		},
	}
	s.server.SetKeepAlivesEnabled(false)
	return s
}

// serve answers one request.
func (s *side) serve(w http.ResponseWriter, r *http.Request) {
	d, g := s.d, r.Context().Value(guardKey{}).(*guard)
	v := d.current()
	s.cors(w, r, v)
	var seen wire.Seen
	for name, values := range r.Header {
		for _, value := range values {
			seen.Take([]byte(name), []byte(value))
		}
	}
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if s.batches.wants(path) {
		s.batches.serve(w, r, v, &seen)
		return
	}
	x := d.newExchange(v, g, &seen)
	x.asked.kind, x.asked.method, x.asked.path, x.asked.query, x.close = surface.Pass, r.Method, path, r.URL.RawQuery, true
	p := &passing{to: &s.out, x: x, in: r, out: w}
	x.reads = p.read
	if f := p.enter(&seen); f != nil {
		d.memory.Give(x.payload.Booked)
		x.record.status, x.record.outcome = f.Status, "refused"
		x.tell()
		x.logged.end(d.id, &x.asked, &x.record)
		p.write(f, true)
		return
	}
	defer p.end()
	p.carry()
}

// discard swallows net/http's own log, which would hold parts of requests.
type discard struct{}

// Write implements io.Writer.
func (discard) Write(p []byte) (int, error) { return len(p), nil }

type guardKey struct{}

func (s *side) start() {
	go s.server.Serve(s.conns) // until end
}

func (s *side) end() {
	s.server.Close()
	s.out.transport.CloseIdleConnections()
}

// of is who serves a connection's next request where fasthttp does not, and then gets
// all that has come of it: a request that passes through, if a pool has a task for its
// path, or HTTP/2; else nil. Of a line that has not come whole more is read.
func (s *side) of(g *guard) func(*guard) {
	if g.beginsHTTP2() {
		return (*guard).speakHTTP2
	}
	for {
		line := pass.ReadLine(g.buf[g.from:g.to])
		if !line.More || g.to == conn.BufSize {
			if line.Path != "" && s.wants(line.Path) {
				return s.take
			}
			return nil
		}
		g.Arm()
		n, err := g.Sock.Read(g.buf[g.to:])
		if g.to += n; err != nil {
			return nil // the next read meets it again
		}
	}
}

func (s *side) wants(path string) bool {
	if s.batches.wants(path) {
		return true
	}
	p, ok := pass.Find(path)
	if !ok {
		return false
	}
	for i := range s.d.current().set.Pools {
		if p.Serves(s.d.current().set.Pools[i].Task) {
			return true
		}
	}
	return false
}

// take serves a connection that has left fasthttp.
func (s *side) take(g *guard) {
	c := aside{g}
	s.d.changed()
	if !s.conns.Give(c) {
		c.Close()
	}
}

// cors answers to pages of the origins that are allowed.
func (s *side) cors(w http.ResponseWriter, r *http.Request, v *snapshot) {
	origin := r.Header.Get("Origin")
	for _, o := range v.set.Door.CORS.Origins {
		if o == "*" || o == origin && origin != "" {
			w.Header().Set("Access-Control-Allow-Origin", o)
			w.Header().Set("Vary", "Origin")
			w.Header().Set("Access-Control-Expose-Headers", "x-request-id, x-roundhouse-worker, x-roundhouse-queue-ms, retry-after")
			return
		}
	}
}

package balancer

import (
	"context"
	"log"
	"net"
	"net/http"
	"time"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/pass"
)

// side serves, on net/http, the requests whose bodies are not held: those that pass
// through. Their connections leave fasthttp before a byte of the request was read, and
// end with the answer, so that the next request is looked at anew.
type side struct {
	d         *common
	conns     *pass.Listener
	server    *http.Server
	transport *http.Transport // to the workers
	loads     pass.Loads
	batches   *batches
}

func newSide(d *common, b *batches) *side {
	s := &side{d: d, conns: pass.NewListener(), batches: b}
	s.transport = &http.Transport{
		DialContext:         (&net.Dialer{Timeout: conn.DialWithin}).DialContext,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: conn.IdleFor,
		WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10,
	}
	s.server = &http.Server{
		Handler:        http.HandlerFunc(s.serve),
		ErrorLog:       log.New(discard{}, "", 0),
		MaxHeaderBytes: 1 << 20, // a guard's limit holds first
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, guardKey{}, c.(aside).guard)
		},
	}
	s.server.SetKeepAlivesEnabled(false)
	return s
}

// discard swallows the server's own log, which would hold parts of requests.
type discard struct{}

// Write implements io.Writer.
func (discard) Write(p []byte) (int, error) { return len(p), nil }

type guardKey struct{}

func (s *side) start() {
	go s.server.Serve(s.conns) // until end
}

func (s *side) end() {
	s.server.Close()
	s.transport.CloseIdleConnections()
}

// takes is who serves a path that fasthttp does not: one that passes through, if a pool
// has a task for it; else nil.
func (s *side) takes(path string) func(*guard) {
	if s.wants(path) {
		return s.take
	}
	return nil
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

// goesAside reports whether the next request is the side's, which then gets it with all
// that has come of it. Of a line that has not come whole more is read.
func (g *guard) goesAside() bool {
	if g.inBody || len(g.head) > 0 || g.ok > g.from || g.d.aside == nil {
		return false
	}
	if g.beginsHTTP2() {
		g.foreign.to = (*guard).speakHTTP2
		return true
	}
	for {
		line := pass.ReadLine(g.held[g.from:g.to])
		if !line.More || g.to == conn.BufSize {
			if line.Path == "" {
				return false
			}
			g.foreign.to = g.d.aside(line.Path)
			return g.foreign.to != nil
		}
		g.Arm()
		n, err := g.Sock.Read(g.held[g.to:])
		if g.to += n; err != nil {
			return false // the next read meets it again
		}
	}
}

// aside is a client's connection as net/http has it.
type aside struct{ *guard }

// Read implements net.Conn.
func (c aside) Read(p []byte) (int, error) {
	g := c.guard
	if g.to > g.from {
		n := copy(p, g.held[g.from:g.to])
		if g.from += n; g.from == g.to {
			g.releaseHeld()
		}
		return n, nil
	}
	return g.Sock.Read(p)
}

// Write implements net.Conn. A client that takes nothing is let go, as everywhere.
func (c aside) Write(p []byte) (int, error) {
	if err := c.guard.send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close implements net.Conn. Another goroutine may still read, so that the buffer, if
// bytes lie in it, is left to the collector.
func (c aside) Close() error {
	g := c.guard
	g.d.watcher.Remove(g.watch.mark)
	g.d.conns.remove(g)
	return g.Conn.Close()
}

// CloseWrite lets the server wait for a client that still sends: a refusal is not lost
// to a reset then.
func (c aside) CloseWrite() error {
	if half, ok := c.guard.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// upload reads a request's body within the time that its bytes may take.
type upload struct {
	body interface{ Read([]byte) (int, error) }
	ctl  *http.ResponseController
	idle time.Duration
	err  error
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	u.ctl.SetReadDeadline(time.Now().Add(u.idle))
	n, err := u.body.Read(p)
	if err != nil {
		u.err = err
		u.ctl.SetReadDeadline(time.Time{})
	}
	return n, err
}

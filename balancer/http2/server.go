package http2

import (
	"context"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"roundhouse/balancer/pass"
)

// Preface is what a client's connection begins with.
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Limits bound one connection.
type Limits struct {
	Streams int           // at once
	Headers int           // bytes of a request's fields
	First   time.Duration // until its preface has come
	Idle    time.Duration // without a stream
	Write   time.Duration // one write
}

// Inner opens the connection in memory that serves a stream of a client's connection.
// left tells its server that the client has left; a nil connection: there is no room.
type Inner func(client net.Conn) (c net.Conn, left func())

// Server serves the connections that it is given. The zero value of it is not ready.
type Server struct {
	inner   Inner
	parting func() bool // answers end their connections
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	active  atomic.Int64 // streams that are being served

	mu     sync.Mutex
	limits Limits
	now    *front              // nil: the next connection makes one
	fronts map[*front]struct{} // those that still have connections
}

// front is a server of net/http, with the limits of its time.
type front struct {
	server http.Server
	conns  *pass.Listener
}

// pingAfter is how long a connection may be silent before it is asked whether it is
// still there: behind a proxy the kernel does not know.
const pingAfter = time.Minute

// New makes a server.
func New(inner Inner, parting func() bool) *Server {
	s := &Server{inner: inner, parting: parting, fronts: map[*front]struct{}{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Serve has a connection served, from its preface on. It reports whether it is.
func (s *Server) Serve(c net.Conn, l Limits) bool {
	for {
		f := s.current(l)
		if f == nil || f.conns.Give(c) {
			return f != nil
		}
	}
}

// current is the front that takes new connections; nil once all is closed.
func (s *Server) current(l Limits) *front {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil
	}
	if s.now != nil && s.limits != l {
		s.retire()
	}
	if s.now == nil {
		s.limits, s.now = l, s.open(&l)
	}
	return s.now
}

// open makes a front. s.mu is held.
func (s *Server) open(l *Limits) *front {
	f := &front{conns: pass.NewListener()}
	f.server = http.Server{
		Handler: http.HandlerFunc(s.serve), ErrorLog: log.New(discard{}, "", 0), DisableGeneralOptionsHandler: true,
		MaxHeaderBytes: l.Headers, ReadHeaderTimeout: l.First, IdleTimeout: l.Idle, Protocols: &http.Protocols{},
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: l.Streams, WriteByteTimeout: l.Write, SendPingTimeout: pingAfter},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, clientKey{}, &client{Conn: c, write: l.Write})
		},
	}
	f.server.Protocols.SetUnencryptedHTTP2(true) // TLS ends before it
	s.fronts[f] = struct{}{}
	s.wg.Go(func() { _ = f.server.Serve(f.conns) }) // until it is shut down
	return f
}

// Retire lets every connection go: its client is told to make another, and what is
// under way on it ends as it would.
func (s *Server) Retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil && s.ctx.Err() == nil {
		s.retire()
	}
}

func (s *Server) retire() {
	f := s.now
	s.now = nil
	s.wg.Go(func() {
		if f.server.Shutdown(s.ctx) == nil {
			s.mu.Lock()
			delete(s.fronts, f)
			s.mu.Unlock()
		}
	})
}

// Busy reports whether an answer is on its way to some client.
func (s *Server) Busy() bool { return s.active.Load() > 0 }

// Close ends every connection.
func (s *Server) Close() {
	s.mu.Lock()
	s.cancel()
	for f := range s.fronts {
		f.server.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// discard swallows the server's own log, which would hold parts of requests.
type discard struct{}

// Write implements io.Writer.
func (discard) Write(p []byte) (int, error) { return len(p), nil }

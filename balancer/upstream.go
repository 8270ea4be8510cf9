package balancer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"roundhouse/balancer/wire"
)

// idleFor is how long an idle connection to a worker is kept: below the 5 s
// after which vLLM's server closes its own, so that a request meets no
// connection that is just ending.
const idleFor = 4 * time.Second

// restedAfter is how long a connection is idle before it is looked at whether
// the worker has ended it. One that ends it while a request is on its way
// resets it mostly, which is noticed at once.
const restedAfter = time.Millisecond

// dialWithin bounds the making of a connection.
const dialWithin = 5 * time.Second

// errStale says that a kept connection had ended before a byte of the answer
// came: the request was not taken up, and another connection may carry it.
var errStale = errors.New("the kept connection to the worker had ended")

// upstream is where a worker listens, with the connections kept to it.
type upstream struct {
	addr   string // host:port
	host   string // the Host field
	prefix string // of every path
	tls    bool

	mu   sync.Mutex
	idle []*upConn
	dead bool
}

// newUpstream reads a worker's URL.
func newUpstream(raw string) (*upstream, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the worker's URL %q is not http://host:port", raw)
	}
	up := &upstream{addr: u.Host, host: u.Host, tls: u.Scheme == "https"}
	if u.Port() == "" {
		port := "80"
		if up.tls {
			port = "443"
		}
		up.addr = net.JoinHostPort(u.Hostname(), port)
	}
	if u.Path != "/" {
		up.prefix = u.Path
	}
	return up, nil
}

// upConn is one connection to a worker.
type upConn struct {
	sock
	up     *upstream
	since  int64 // when it was put back, by the door's clock
	reused bool
	rested bool // it was idle for long enough that the worker may have ended it

	rest *[bufSize]byte // bytes read and not consumed: [from:to]
	from int
	to   int
}

// get returns a kept connection, or a new one.
func (u *upstream) get(fresh bool, now int64) (*upConn, error) {
	for !fresh {
		u.mu.Lock()
		n := len(u.idle)
		if n == 0 {
			u.mu.Unlock()
			break
		}
		c := u.idle[n-1]
		u.idle = u.idle[:n-1]
		u.mu.Unlock()
		if now-c.since < int64(idleFor) {
			c.reused, c.rested = true, now-c.since > int64(restedAfter)
			return c, nil
		}
		c.close()
	}
	return u.dial()
}

// dial makes a connection, in a goroutine of its own: resolving and connecting
// grow a stack, and a stream's goroutine would keep it.
func (u *upstream) dial() (c *upConn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err = u.connect()
	}()
	<-done
	return c, err
}

func (u *upstream) connect() (*upConn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialWithin)
	defer cancel()
	nc, err := (&net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}).DialContext(ctx, "tcp", u.addr)
	if err != nil {
		return nil, err
	}
	if u.tls {
		host, _, _ := net.SplitHostPort(u.addr)
		tc := tls.Client(nc, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12})
		if err := tc.HandshakeContext(ctx); err != nil {
			nc.Close()
			return nil, err
		}
		nc = tc
	}
	c := &upConn{up: u}
	c.sock.init(nc)
	return c, nil
}

// put keeps a connection whose answer was read whole.
func (c *upConn) put(now int64) {
	if c.to > c.from {
		c.close() // bytes that nobody asked for
		return
	}
	c.dropRest()
	c.since = now
	u := c.up
	u.mu.Lock()
	if u.dead || len(u.idle) >= 1024 {
		u.mu.Unlock()
		c.close()
		return
	}
	u.idle = append(u.idle, c)
	u.mu.Unlock()
}

func (c *upConn) close() {
	c.dropRest()
	c.Conn.Close()
}

func (c *upConn) dropRest() {
	if c.rest != nil {
		drop(c.rest)
		c.rest, c.from, c.to = nil, 0, 0
	}
}

// sweep closes connections that were idle for too long.
func (u *upstream) sweep(now int64) {
	u.mu.Lock()
	n := 0
	for n < len(u.idle) && now-u.idle[n].since >= int64(idleFor) {
		n++
	}
	old := append([]*upConn(nil), u.idle[:n]...)
	u.idle = append(u.idle[:0], u.idle[n:]...)
	u.mu.Unlock()
	for _, c := range old {
		c.close()
	}
}

// lend takes idle connections out, those that were used last, and leaves so
// many.
func (u *upstream) lend(keep int) []*upConn {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := min(keep, len(u.idle))
	out := append([]*upConn(nil), u.idle[n:]...)
	u.idle = u.idle[:n]
	return out
}

// adopt keeps a connection that another door has made, idle since then. The
// list stays in the order of its times.
func (u *upstream) adopt(nc net.Conn, since int64) {
	c := &upConn{up: u, since: since}
	c.sock.init(nc)
	u.mu.Lock()
	if u.dead {
		u.mu.Unlock()
		c.close()
		return
	}
	at := len(u.idle)
	for at > 0 && u.idle[at-1].since > since {
		at--
	}
	u.idle = slices.Insert(u.idle, at, c)
	u.mu.Unlock()
}

// retire closes what is kept, and what is put back from now on.
func (u *upstream) retire() {
	u.mu.Lock()
	idle := u.idle
	u.idle, u.dead = nil, true
	u.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
}

// fill reads more bytes, after those that are there; it reports io.EOF when
// the worker has closed. There must be room: what is there was consumed, or is
// a head that is not whole.
func (c *upConn) fill() error {
	if c.from == c.to {
		c.dropRest()
		buf, n, err := c.receive()
		if err != nil {
			return err
		}
		c.rest, c.from, c.to = buf, 0, n
		return nil
	}
	if c.from > 0 {
		copy(c.rest[:], c.rest[c.from:c.to])
		c.from, c.to = 0, c.to-c.from
	}
	if c.to == bufSize {
		return wire.ErrAnswer
	}
	n, err := c.sock.Read(c.rest[c.to:])
	c.to += n
	if n > 0 {
		return nil
	}
	return err
}

// answer reads the head of an answer and leaves what follows it in rest. The
// fields of a lie in the buffer until the next fill.
func (c *upConn) answer(a *wire.Answer) error {
	for {
		if end := wire.HeadEnd(c.rest0()); end > 0 {
			if err := wire.ParseAnswer(c.rest[c.from:c.from+end], a); err != nil {
				return err
			}
			c.from += end
			if a.Status >= 200 {
				return nil
			}
			continue // 100 Continue and its like
		}
		started := c.to > c.from
		if err := c.fill(); err != nil {
			if c.reused && !started && !timedOut(err) {
				return fmt.Errorf("%w: %w", errStale, err)
			}
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
}

func (c *upConn) rest0() []byte {
	if c.rest == nil {
		return nil
	}
	return c.rest[c.from:c.to]
}

// take returns the bytes at hand and counts them as consumed. They stay valid
// until the next fill.
func (c *upConn) take(n int) []byte {
	b := c.rest[c.from:c.to]
	if n >= 0 && n < len(b) {
		b = b[:n]
	}
	c.from += len(b)
	return b
}

// fixed reads a body of n bytes behind dst.
func (c *upConn) fixed(dst []byte, n int) ([]byte, error) {
	was := len(dst)
	if cap(dst)-was < n {
		dst = append(make([]byte, 0, was+n), dst...)
	}
	if c.rest != nil {
		dst = append(dst, c.take(n)...)
	}
	got := len(dst) - was
	if got == n {
		return dst, nil
	}
	dst = dst[:was+n]
	if _, err := io.ReadFull(&c.sock, dst[was+got:]); err != nil {
		return dst[:was], io.ErrUnexpectedEOF
	}
	return dst, nil
}

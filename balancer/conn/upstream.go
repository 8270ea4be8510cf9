package conn

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

// IdleFor is how long an idle connection to a worker is kept: below the 5 s
// after which vLLM's server closes its own, so that a request meets no
// connection that is just ending.
const IdleFor = 4 * time.Second

// restedAfter is how long a connection is idle before it is looked at whether
// the worker has ended it. One that ends it while a request is on its way
// resets it mostly, which is noticed at once.
const restedAfter = time.Millisecond

// DialWithin bounds the making of a connection.
const DialWithin = 5 * time.Second

// ErrStale says that a kept connection had ended before a byte of the answer
// came: the request was not taken up, and another connection may carry it.
var ErrStale = errors.New("the kept connection to the worker had ended")

// Upstream is where a worker listens, with the connections kept to it.
type Upstream struct {
	Addr   string // host:port
	Host   string // the Host field
	Prefix string // of every path
	TLS    bool

	mu   sync.Mutex
	idle []*Conn
	dead bool
}

// NewUpstream reads a worker's URL.
func NewUpstream(raw string) (*Upstream, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the worker's URL %q is not http://host:port", raw)
	}
	up := &Upstream{Addr: u.Host, Host: u.Host, TLS: u.Scheme == "https"}
	if u.Port() == "" {
		port := "80"
		if up.TLS {
			port = "443"
		}
		up.Addr = net.JoinHostPort(u.Hostname(), port)
	}
	if u.Path != "/" {
		up.Prefix = u.Path
	}
	return up, nil
}

// Conn is one connection to a worker.
type Conn struct {
	Sock
	Up     *Upstream
	since  int64 // when it was put back, by the door's clock
	Reused bool
	Rested bool // it was idle for long enough that the worker may have ended it

	rest *[BufSize]byte // bytes read and not consumed: [from:to]
	from int
	to   int
}

// Get returns a kept connection, or a new one.
func (u *Upstream) Get(fresh bool, now int64) (*Conn, error) {
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
		if now-c.since < int64(IdleFor) {
			c.Reused, c.Rested = true, now-c.since > int64(restedAfter)
			return c, nil
		}
		c.Close()
	}
	return u.dial()
}

// dial makes a connection, in a goroutine of its own: resolving and connecting
// grow a stack, and a stream's goroutine would keep it.
func (u *Upstream) dial() (c *Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err = u.connect()
	}()
	<-done
	return c, err
}

func (u *Upstream) connect() (*Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), DialWithin)
	defer cancel()
	nc, err := (&net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}).DialContext(ctx, "tcp", u.Addr)
	if err != nil {
		return nil, err
	}
	if u.TLS {
		host, _, _ := net.SplitHostPort(u.Addr)
		tc := tls.Client(nc, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12})
		if err := tc.HandshakeContext(ctx); err != nil {
			nc.Close()
			return nil, err
		}
		nc = tc
	}
	c := &Conn{Up: u}
	c.Sock.Init(nc)
	return c, nil
}

// Put keeps a connection whose answer was read whole.
func (c *Conn) Put(now int64) {
	if c.to > c.from {
		c.Close() // bytes that nobody asked for
		return
	}
	c.dropRest()
	c.since = now
	u := c.Up
	u.mu.Lock()
	if u.dead || len(u.idle) >= 1024 {
		u.mu.Unlock()
		c.Close()
		return
	}
	u.idle = append(u.idle, c)
	u.mu.Unlock()
}

// Close closes the connection.
func (c *Conn) Close() {
	c.dropRest()
	c.Conn.Close()
}

func (c *Conn) dropRest() {
	if c.rest != nil {
		Drop(c.rest)
		c.rest, c.from, c.to = nil, 0, 0
	}
}

// Sweep closes connections that were idle for too long.
func (u *Upstream) Sweep(now int64) {
	u.mu.Lock()
	n := 0
	for n < len(u.idle) && now-u.idle[n].since >= int64(IdleFor) {
		n++
	}
	old := append([]*Conn(nil), u.idle[:n]...)
	u.idle = append(u.idle[:0], u.idle[n:]...)
	u.mu.Unlock()
	for _, c := range old {
		c.Close()
	}
}

// Lend takes idle connections out, those that were used last, and leaves so
// many.
func (u *Upstream) Lend(keep int) []*Conn {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := min(keep, len(u.idle))
	out := append([]*Conn(nil), u.idle[n:]...)
	u.idle = u.idle[:n]
	return out
}

// Adopt keeps a connection that another door has made, idle since then. The
// list stays in the order of its times.
func (u *Upstream) Adopt(nc net.Conn, since int64) {
	c := &Conn{Up: u, since: since}
	c.Sock.Init(nc)
	u.mu.Lock()
	if u.dead {
		u.mu.Unlock()
		c.Close()
		return
	}
	at := len(u.idle)
	for at > 0 && u.idle[at-1].since > since {
		at--
	}
	u.idle = slices.Insert(u.idle, at, c)
	u.mu.Unlock()
}

// Retire closes what is kept, and what is put back from now on.
func (u *Upstream) Retire() {
	u.mu.Lock()
	idle := u.idle
	u.idle, u.dead = nil, true
	u.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
}

// Fill reads more bytes, after those that are there; it reports io.EOF when
// the worker has closed. There must be room: what is there was consumed, or is
// a head that is not whole.
func (c *Conn) Fill() error {
	if c.from == c.to {
		c.dropRest()
		buf, n, err := c.Receive()
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
	if c.to == BufSize {
		return wire.ErrAnswer
	}
	n, err := c.Sock.Read(c.rest[c.to:])
	c.to += n
	if n > 0 {
		return nil
	}
	return err
}

// Buffered is how many bytes are read and not consumed.
func (c *Conn) Buffered() int { return c.to - c.from }

// Idle is how long ago the connection was put back.
func (c *Conn) Idle(now int64) time.Duration { return time.Duration(now - c.since) }

// Answer reads the head of an answer and leaves what follows it in rest. The
// fields of a lie in the buffer until the next fill.
func (c *Conn) Answer(a *wire.Answer) error {
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
		if err := c.Fill(); err != nil {
			if err == io.EOF && !started && c.unread() {
				err = errUnread
			}
			if c.Reused && !started && !TimedOut(err) {
				return fmt.Errorf("%w: %w", ErrStale, err)
			}
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
}

func (c *Conn) rest0() []byte {
	if c.rest == nil {
		return nil
	}
	return c.rest[c.from:c.to]
}

// take returns the bytes at hand and counts them as consumed. They stay valid
// until the next fill.
func (c *Conn) take(n int) []byte {
	b := c.rest[c.from:c.to]
	if n >= 0 && n < len(b) {
		b = b[:n]
	}
	c.from += len(b)
	return b
}

// Ahead returns the next n bytes, at most BufSize, which stay to be read.
func (c *Conn) Ahead(n int) ([]byte, error) {
	for c.Buffered() < n {
		if err := c.Fill(); err != nil {
			return nil, err
		}
	}
	return c.rest[c.from : c.from+n], nil
}

// Fixed reads a body of n bytes behind dst.
func (c *Conn) Fixed(dst []byte, n int) ([]byte, error) {
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
	if _, err := io.ReadFull(&c.Sock, dst[was+got:]); err != nil {
		return dst[:was], io.ErrUnexpectedEOF
	}
	return dst, nil
}

package http2

import (
	"net"
	"sync"
	"time"
)

// How often the client of a connection may leave a stream before its answer's end: a
// proxy carries many people's, who stop their answers, but nobody begins requests by
// the thousand to drop them.
const (
	resetBurst  = 1000
	resetSecond = 50
)

// client is a client's connection.
type client struct {
	net.Conn
	write time.Duration

	mu     sync.Mutex
	resets float64 // that count still
	at     time.Time
}

// reset counts a stream that its client has left, and ends the connection of one that
// does nothing else.
func (c *client) reset(now time.Time) {
	c.mu.Lock()
	c.resets = max(0, c.resets-now.Sub(c.at).Seconds()*resetSecond) + 1
	c.at = now
	over := c.resets > resetBurst
	c.mu.Unlock()
	if over {
		c.Close()
	}
}

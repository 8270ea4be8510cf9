package moby

import (
	"context"
	"sync"
	"time"

	"github.com/docker/docker/client"
)

// agreeTimeout is how long an engine may take to name its version.
const agreeTimeout = 30 * time.Second

// Version is what an engine and its client have agreed upon.
type Version struct {
	mu      sync.Mutex // held while it is settled
	settled bool
}

// Settle settles it once: the client would do so by itself, and races where two
// calls are its first.
func (v *Version) Settle(ctx context.Context, c *client.Client) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.settled {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, agreeTimeout)
	defer cancel()
	ping, err := c.Ping(ctx)
	if err != nil {
		return err
	}
	c.NegotiateAPIVersionPing(ping)
	v.settled = true
	return nil
}

package balancer

import "sync"

// conns is the clients' connections.
type conns struct {
	mu  sync.Mutex
	all map[*guard]struct{}
}

func (c *conns) add(g *guard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[*guard]struct{}{}
	}
	c.all[g] = struct{}{}
}

func (c *conns) remove(g *guard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, g)
}

func (c *conns) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// list is the connections there are now.
func (c *conns) list() []*guard {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*guard, 0, len(c.all))
	for g := range c.all {
		list = append(list, g)
	}
	return list
}

// underway reports whether some client is sending a request or taking an answer.
func (c *conns) underway() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for g := range c.all {
		if g.midway.Load() || g.writing.Load() {
			return true
		}
	}
	return false
}

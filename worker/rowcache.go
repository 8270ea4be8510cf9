package worker

import "container/list"

// rowCache keeps rows of items by digest, the latest used first, within a budget
// of bytes. What a request that runs stands on is pinned.
type rowCache struct {
	budget int64
	bytes  int64 // of all
	pinned int64 // of those that are pinned
	index  map[[32]byte]*rowEntry
	idle   list.List // of *rowEntry without pins, the latest used in front
}

// rowEntry is an item's rows.
type rowEntry struct {
	digest [32]byte
	rows   []float32
	pins   int
	place  *list.Element // in idle; nil: it is pinned
}

func (e *rowEntry) bytes() int64 { return 4 * int64(len(e.rows)) }

func (c *rowCache) has(digest [32]byte) bool { return c.index[digest] != nil }

func (c *rowCache) hasAll(items []Item) bool {
	for i := range items {
		if !c.has(items[i].Digest) {
			return false
		}
	}
	return true
}

// room reports whether rows of so many numbers may be made for a request with
// these items, which have first call on the budget. What is larger than that has
// it alone.
func (c *rowCache) room(items []Item, numbers int) bool {
	need := 4 * int64(numbers)
	own, seen := int64(0), map[*rowEntry]bool{}
	for i := range items {
		if e := c.index[items[i].Digest]; e != nil && e.pins == 0 && !seen[e] {
			own, seen[e] = own+e.bytes(), true
			c.idle.MoveToFront(e.place) // it is the last to go
		}
	}
	return c.pinned == 0 || c.pinned+own+need <= c.budget
}

// put takes rows in. Others make room, but for the latest, which a request is
// about to pin.
func (c *rowCache) put(digest [32]byte, rows []float32) {
	if c.has(digest) {
		return
	}
	if c.index == nil {
		c.index = map[[32]byte]*rowEntry{}
	}
	e := &rowEntry{digest: digest, rows: rows}
	c.index[digest] = e
	c.bytes += e.bytes()
	e.place = c.idle.PushFront(e)
}

// trim drops what was not used for longest until the budget holds.
func (c *rowCache) trim() {
	for c.bytes > c.budget && c.idle.Len() > 0 {
		e := c.idle.Remove(c.idle.Back()).(*rowEntry)
		delete(c.index, e.digest)
		c.bytes -= e.bytes()
	}
}

// pin takes the rows of items, which are all there, for a request.
func (c *rowCache) pin(items []Item) []*rowEntry {
	entries := make([]*rowEntry, len(items))
	for i := range items {
		e := c.index[items[i].Digest]
		if e.pins == 0 {
			c.idle.Remove(e.place)
			e.place = nil
			c.pinned += e.bytes()
		}
		e.pins++
		entries[i] = e
	}
	c.trim()
	return entries
}

// unpin gives them back.
func (c *rowCache) unpin(entries []*rowEntry) {
	for _, e := range entries {
		if e.pins--; e.pins == 0 {
			e.place = c.idle.PushFront(e)
			c.pinned -= e.bytes()
		}
	}
	c.trim()
}

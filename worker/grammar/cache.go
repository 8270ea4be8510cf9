package grammar

import (
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
)

// Cache compiles specifications and keeps the grammars used last: the schema
// of an application comes with every one of its requests. It is safe for use
// by several goroutines at once.
type Cache struct {
	vocab *Vocab
	most  int

	mu    sync.Mutex
	order *list.List // of *cached, the last used first
	byKey map[[32]byte]*list.Element
}

type cached struct {
	key  [32]byte
	once sync.Once
	g    *Grammar
	err  error
}

// NewCache returns a cache of at most so many grammars.
func NewCache(v *Vocab, most int) *Cache {
	return &Cache{vocab: v, most: max(most, 1), order: list.New(), byKey: map[[32]byte]*list.Element{}}
}

// Get returns the grammar of a specification. Whoever asks for the same one
// meanwhile waits for it; refused specifications are remembered like others.
func (c *Cache) Get(spec Spec) (*Grammar, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	e := c.entry(sha256.Sum256(raw))
	e.once.Do(func() { e.g, e.err = Compile(spec, c.vocab) })
	return e.g, e.err
}

// entry finds or makes the entry of a key, and drops the one that was not
// used for longest.
func (c *Cache) entry(key [32]byte) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.byKey[key]; ok {
		c.order.MoveToFront(at)
		return at.Value.(*cached)
	}
	e := &cached{key: key}
	c.byKey[key] = c.order.PushFront(e)
	if c.order.Len() > c.most {
		last := c.order.Back()
		delete(c.byKey, last.Value.(*cached).key)
		c.order.Remove(last)
	}
	return e
}

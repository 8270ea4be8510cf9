package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// AdapterSlots is where an engine's adapters lie.
type AdapterSlots struct {
	Count int // 0: there is no room for any

	// Load fills a slot, from 0 on, with the adapter that lies at a path. The
	// engine's goroutine calls it between two steps.
	Load func(slot int, path string) error
}

// Adapter is an adapter that requests may name.
type Adapter struct {
	Name, Path string
	Base       string // the name of its model, as it was told; "": the served one
	Created    int64

	slot int    // from 0 on
	id   uint64 // from 1 on; its prompts share no cache with others'
}

// adapters is an engine's account of its adapters. One whose name is gone keeps
// its slot until nothing runs on it and another wants it.
type adapters struct {
	slots []*Adapter // by slot; of the engine's goroutine
	count uint64     // of those that were ever loaded

	mu    sync.Mutex
	named []*Adapter // in the order of their loading
}

// Reasons why an adapter is not taken, or not found.
var (
	ErrAdapterLoaded  = errors.New("an adapter of this name is loaded")
	ErrAdapterUnknown = errors.New("no adapter has this name")
)

// Adapters lists the adapters that requests may name.
func (e *Engine) Adapters() []*Adapter {
	e.adapters.mu.Lock()
	defer e.adapters.mu.Unlock()
	return slices.Clone(e.adapters.named)
}

// Adapter finds an adapter by name; nil if there is none.
func (e *Engine) Adapter(name string) *Adapter {
	for _, a := range e.Adapters() {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// AdapterRoom is how many adapters can be loaded at once.
func (e *Engine) AdapterRoom() int { return e.cfg.Adapters.Count }

// LoadAdapter reads an adapter from its path. Inplace lets it take the name of
// another, whose requests under way go on with what they began with.
func (e *Engine) LoadAdapter(ctx context.Context, a Adapter, inplace bool) error {
	err := ErrClosed
	e.call(ctx, func() { err = e.loadAdapter(&a, inplace) })
	return err
}

// Preload is LoadAdapter before Run.
func (e *Engine) Preload(a Adapter) error { return e.loadAdapter(&a, false) }

func (e *Engine) loadAdapter(a *Adapter, inplace bool) error {
	old := e.Adapter(a.Name)
	if old != nil && !inplace {
		return ErrAdapterLoaded
	}
	if e.asleep > 0 {
		return errors.New("the worker sleeps; wake it up first")
	}
	if a.slot = e.freeSlot(); a.slot < 0 {
		return fmt.Errorf("all %d slots for adapters are taken; unload one, or start the worker with a higher --max-cpu-loras", e.cfg.Adapters.Count)
	}
	s := &e.adapters
	s.slots[a.slot] = nil
	if err := e.cfg.Adapters.Load(a.slot, a.Path); err != nil {
		return err
	}
	s.count++
	a.Created, a.id = time.Now().Unix(), s.count
	s.slots[a.slot] = a
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named = slices.DeleteFunc(s.named, func(o *Adapter) bool { return o == old })
	s.named = append(s.named, a)
	return nil
}

// UnloadAdapter takes an adapter's name away. Requests under way go on with it.
func (e *Engine) UnloadAdapter(ctx context.Context, name string) error {
	err := ErrClosed
	e.call(ctx, func() {
		old := e.Adapter(name)
		if err = nil; old == nil {
			err = ErrAdapterUnknown
			return
		}
		e.adapters.mu.Lock()
		defer e.adapters.mu.Unlock()
		e.adapters.named = slices.DeleteFunc(e.adapters.named, func(o *Adapter) bool { return o == old })
	})
	return err
}

// freeSlot is a slot whose adapter has no name and no requests; -1: none.
func (e *Engine) freeSlot() int {
	return slices.IndexFunc(e.adapters.slots, func(a *Adapter) bool { return !e.uses(a) })
}

// uses reports whether an adapter has its name yet, or requests under way.
func (e *Engine) uses(a *Adapter) bool {
	if a == nil {
		return false
	}
	used := e.Adapter(a.Name) == a
	for r := range e.live {
		used = used || r.Adapter == a
	}
	return used
}

// holds reports whether an adapter still lies in its slot.
func (s *adapters) holds(a *Adapter) bool { return s.slots[a.slot] == a }

// reloadAdapters fills the slots again after a sleep.
func (e *Engine) reloadAdapters() error {
	for slot, a := range e.adapters.slots {
		if !e.uses(a) {
			e.adapters.slots[slot] = nil
			continue
		}
		if err := e.cfg.Adapters.Load(slot, a.Path); err != nil {
			return fmt.Errorf("the adapter %s: %w", a.Name, err)
		}
	}
	return nil
}

// adapterNames are those that requests run on, and wait for, as vLLM's metric
// lists them.
func (e *Engine) adapterNames() (running, waiting string) {
	names := map[bool][]string{}
	for r := range e.live {
		if r.Adapter == nil {
			continue
		}
		runs := slices.ContainsFunc(r.choices, func(q *Sequence) bool { return q != nil && q.state == seqRunning })
		if !slices.Contains(names[runs], r.Adapter.Name) {
			names[runs] = append(names[runs], r.Adapter.Name)
		}
	}
	slices.Sort(names[true])
	slices.Sort(names[false])
	return strings.Join(names[true], ","), strings.Join(names[false], ",")
}

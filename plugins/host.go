package plugins

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Host is the set of plugins that a configuration names.
type Host struct {
	opts Options

	mu   sync.RWMutex
	runs map[string]*Plugin
}

// NewHost makes an empty set. Options hold for all of its plugins.
func NewHost(o Options) *Host { return &Host{opts: o, runs: map[string]*Plugin{}} }

// Get returns the running plugin of that name, or nil.
func (h *Host) Get(name string) *Plugin {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.runs[name]
}

// Apply makes the set equal to specs. What is new or changed is started first and
// has until ctx ends to shake hands; only then are the old ones let go, after the
// calls that they still answer. A changed plugin that does not come up changes
// nothing; one that was not there before is kept, and tried on and on: until it runs,
// its callers do as on_failure says.
func (h *Host) Apply(ctx context.Context, specs []Spec) error {
	fresh := map[string]*Plugin{}
	next := map[string]*Plugin{}
	for _, s := range specs {
		if next[s.Name] != nil {
			return fmt.Errorf("plugin %s is configured twice", s.Name)
		}
		if old := h.Get(s.Name); old != nil && old.Spec() == s {
			next[s.Name] = old
			continue
		}
		fresh[s.Name] = Start(s, h.opts)
		next[s.Name] = fresh[s.Name]
	}
	var errs []error
	for name, p := range fresh {
		err := p.Ready(ctx)
		switch {
		case err == nil:
		case h.Get(name) == nil:
			p.log.Error("plugin does not come up; it is tried again", "error", err)
		default:
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		for _, p := range fresh {
			p.Close()
		}
		return err
	}
	h.mu.Lock()
	old := h.runs
	h.runs = next
	h.mu.Unlock()
	for name, p := range old {
		if next[name] != p {
			p.retire()
		}
	}
	return nil
}

// retire lets the calls that are under way end, then closes.
func (p *Plugin) retire() {
	for range cap(p.seats) {
		p.seats <- struct{}{} // no call takes longer than its deadline
	}
	p.Close()
}

// Stats reads all plugins.
func (h *Host) Stats() []Stats {
	h.mu.RLock()
	defer h.mu.RUnlock()
	all := make([]Stats, 0, len(h.runs))
	for _, p := range h.runs {
		all = append(all, p.Stats())
	}
	return all
}

// Close ends all plugins and waits.
func (h *Host) Close() {
	h.mu.Lock()
	runs := h.runs
	h.runs = map[string]*Plugin{}
	h.mu.Unlock()
	for _, p := range runs {
		p.Close()
	}
}

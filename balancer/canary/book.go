package canary

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/configs"
	"roundhouse/configs/statefile"
)

// file is where trials are written down, in a folder that doors may share.
const file = "canaries.json"

// writeEvery is how often conversations are written down. The state of a trial is at once.
const writeEvery = 10 * time.Second

// Book is the trials of a door.
type Book struct {
	dir string // empty: nothing is written down

	tending sync.Mutex // held while they are written down
	wrote   time.Time

	mu     sync.Mutex
	trials map[string]*Trial // by route
	saved  map[string]control.CanaryState
	fault  error
}

// Open reads what was written down. A folder that cannot be read has its fault told.
func Open(dir string) *Book {
	b := &Book{dir: dir, trials: map[string]*Trial{}}
	b.saved, b.fault = b.read()
	return b
}

// read is what is written down, by route.
func (b *Book) read() (map[string]control.CanaryState, error) {
	if b.dir == "" {
		return nil, nil
	}
	data, err := os.ReadFile(filepath.Join(b.dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var page struct{ Canaries []control.CanaryState }
	if err == nil {
		err = json.Unmarshal(data, &page)
	}
	if err != nil {
		return nil, fmt.Errorf("canaries: %w", err)
	}
	out := map[string]control.CanaryState{}
	for _, s := range page.Canaries {
		out[s.Route] = s
	}
	return out, nil
}

// Of is the trial of a route, begun if there is none by that plan; nil for a route without.
func (b *Book) Of(r *configs.Route, now time.Time) *Trial {
	if r.Canary == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.trials[r.Name]; t != nil && t.id == r.Canary.Digest() {
		t.follow(*r.Canary)
		return t
	}
	var saved *control.CanaryState
	if s, ok := b.saved[r.Name]; ok {
		saved = &s
	}
	t := newTrial(r.Name, *r.Canary, saved, now)
	b.trials[r.Name] = t
	return t
}

// Keep forgets the trials of routes that are not there any more.
func (b *Book) Keep(routes []configs.Route) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.trials {
		if !slices.ContainsFunc(routes, func(r configs.Route) bool { return r.Name == name && r.Canary != nil }) {
			delete(b.trials, name)
		}
	}
}

// all is the trials, by the names of their routes.
func (b *Book) all() []*Trial {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]*Trial, 0, len(b.trials))
	for _, t := range b.trials {
		out = append(out, t)
	}
	slices.SortFunc(out, func(x, y *Trial) int { return strings.Compare(x.route, y.route) })
	return out
}

// Find is the trial of a route that was asked for; nil: it has none.
func (b *Book) Find(route string) *Trial {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.trials[route]
}

// Shown lists the trials as operators see them.
func (b *Book) Shown() []control.CanaryShown {
	out := []control.CanaryShown{}
	for _, t := range b.all() {
		out = append(out, t.Shown())
	}
	return out
}

// Told is what other doors are told; whole: with all conversations.
func (b *Book) Told(whole bool) (out []control.CanaryState) {
	for _, t := range b.all() {
		if whole {
			out = append(out, t.Whole())
		} else {
			out = append(out, t.Told())
		}
	}
	return out
}

// Hear takes what another door knows.
func (b *Book) Hear(all []control.CanaryState, now time.Time) {
	for _, s := range all {
		if t := b.Find(s.Route); t != nil {
			t.Hear(s, now)
		}
	}
}

// Tend moves trials on where only time was missing, and writes down what is new; last: all
// of it, since the door ends.
func (b *Book) Tend(now time.Time, last bool) {
	b.tending.Lock()
	defer b.tending.Unlock()
	due, late := false, last || now.Sub(b.wrote) >= writeEvery
	for _, t := range b.all() {
		t.Look(now)
		state, conversations := t.unwritten()
		due = due || state || conversations && late
	}
	if !due || b.dir == "" {
		return
	}
	b.wrote = now
	written, err := b.read()
	if err == nil { // by another door that shares the folder, which tells its conversations itself
		for _, s := range written {
			s.Kept = nil
			b.Hear([]control.CanaryState{s}, now)
		}
	}
	if err = b.write(); err == nil {
		for _, t := range b.all() {
			t.written()
		}
	}
	b.mu.Lock()
	b.fault = err
	b.mu.Unlock()
}

// Fault is why trials cannot be written down; nil: they are.
func (b *Book) Fault() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fault
}

// write writes the trials down, whole or not at all.
func (b *Book) write() error {
	data, err := json.Marshal(map[string]any{"schema": 1, "canaries": b.Told(true)})
	if err != nil {
		return err
	}
	if err := statefile.Write(filepath.Join(b.dir, file), data); err != nil {
		return fmt.Errorf("canaries: %w", err)
	}
	return nil
}

package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"roundhouse/worker/api"
)

// The rhythm of the status stream.
const (
	statusEvery  = time.Second
	statusAtMost = 20 * time.Millisecond
)

// feed holds the latest report and wakes those who wait for the next.
type feed struct {
	mu      sync.Mutex
	status  api.Status
	changed chan struct{} // closed when status changes
	at      time.Time
}

func newFeed() feed { return feed{changed: make(chan struct{})} }

// publish makes a new report, at once when the engine is about to wait and
// else as often as the stream may change.
func (e *Engine) publish(idle bool) {
	e.stats.gauges(e)
	f := &e.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if !idle && now.Sub(f.at) < statusAtMost {
		return
	}
	f.at = now
	f.status = e.report()
	close(f.changed)
	f.changed = make(chan struct{})
}

// report is the engine's status, without its moment and its evictions.
func (e *Engine) report() api.Status {
	stats := &e.stats.s // written by this goroutine alone
	return api.Status{
		Protocol: api.StatusProtocol, Generation: e.cfg.Generation,
		CapacityTokens: int64(e.cache.CapacityTokens()), UsedTokens: int64(e.cache.UsedTokens()),
		CachedTokens: int64(e.cache.CachedTokens()), MaxModelLen: e.cfg.MaxModelLen,
		Running: e.sched.Running(), Waiting: e.sched.Waiting() + len(e.pooling) + len(e.sight.queue), PrefillTokens: int64(e.sched.PrefillTokens()),
		PromptTokens: stats.PromptTokens, GeneratedTokens: stats.GenerationTokens,
		Models: e.models(), Modalities: e.modalities(), Draining: e.Err() != nil, Doors: e.doors.report(e),
	}
}

// modalities are what a prompt may hold.
func (e *Engine) modalities() []string {
	switch {
	case e.cfg.Tower == nil:
		return []string{"text"}
	case e.cfg.Tower.Beside:
		return []string{"audio"}
	}
	return []string{"text", "image"}
}

// models are the names that clients may ask for.
func (e *Engine) models() []string {
	names := slices.Clip(e.cfg.Models)
	for _, a := range e.Adapters() {
		names = append(names, a.Name)
	}
	return names
}

// Watch sends the engine's status at once, on every change (at most every
// 20 ms) and every second, until ctx ends, send fails, or the engine has ended.
func (e *Engine) Watch(ctx context.Context, send func(api.Status) error) error {
	_, cursor := e.doors.since(0)
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		e.feed.mu.Lock()
		status, changed := e.feed.status, e.feed.changed
		e.feed.mu.Unlock()
		if status.Protocol != 0 { // else the engine has not begun to run
			status.At = time.Now().UnixMilli()
			var gone map[string][]string
			gone, cursor = e.doors.since(cursor)
			if err := send(withEvicted(status, gone)); err != nil {
				return err
			}
		}
		tick.Reset(statusAtMost)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-e.Done():
			return ErrClosed
		}
		tick.Reset(statusEvery - statusAtMost)
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-e.Done():
			return ErrClosed
		}
	}
}

// withEvicted adds the evictions to a copy of the doors, which other watchers
// share.
func withEvicted(s api.Status, gone map[string][]string) api.Status {
	if len(gone) == 0 {
		return s
	}
	doors := make(map[string]api.DoorStatus, len(s.Doors))
	for id, d := range s.Doors {
		d.Evicted = gone[id]
		doors[id] = d
	}
	s.Doors = doors
	return s
}

// WaitIdle waits until no request is under way. It says false when ctx ended
// before.
func (e *Engine) WaitIdle(ctx context.Context) bool {
	tick := time.NewTicker(statusAtMost)
	defer tick.Stop()
	for {
		idle := false
		if !e.call(ctx, func() { idle = len(e.live)+len(e.pooling)+e.pinned() == 0 }) {
			return e.isDone()
		}
		if idle {
			return true
		}
		select {
		case <-tick.C:
		case <-e.done:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

func (e *Engine) isDone() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

package extend

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"roundhouse/configs"
	"roundhouse/plugins"
	"roundhouse/plugins/sdk"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/journal"
)

// Set is the plugins that a supervisor runs.
type Set struct {
	host   *plugins.Host
	worker string
	log    *slog.Logger

	mu        sync.Mutex
	notifiers *Notifiers
}

// The deadlines of calls: a driver starts and stops things, a notifier reaches across a
// network.
const (
	callWithin  = 30 * time.Second
	startWithin = 15 * time.Second
)

// New makes an empty set. worker is the program that a driver is given where a pool has
// no command.
func New(worker string, log *slog.Logger) *Set {
	return &Set{host: plugins.NewHost(plugins.Options{Log: log, Deadline: callWithin}), worker: worker, log: log, notifiers: &Notifiers{}}
}

// Apply runs the drivers and notifiers of a configuration: what is changed serves
// before the old one is let go.
func (s *Set) Apply(all []configs.Plugin) error {
	var specs []plugins.Spec
	for _, p := range all {
		if p.Kind == sdk.KindDriver || p.Kind == sdk.KindNotifier {
			specs = append(specs, plugins.Spec{Name: p.Name, Kind: p.Kind, Path: p.Path, SHA256: p.SHA256, Open: p.OnFailure == "open", User: p.User})
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	if err := s.host.Apply(ctx, specs); err != nil {
		return fmt.Errorf("plugins: %w", err)
	}
	var told []*plugins.Plugin
	for _, spec := range specs {
		if spec.Kind == sdk.KindNotifier {
			told = append(told, s.host.Get(spec.Name))
		}
	}
	next := NewNotifiers(told, func(name string, e journal.Event, err error) {
		s.log.Warn("a notifier did not deliver an event", "plugin", name, "event", e.ID, "kind", e.Kind, "error", err)
	})
	s.mu.Lock()
	old := s.notifiers
	s.notifiers = next
	s.mu.Unlock()
	old.Close()
	return nil
}

// Driver is what driver = "plugin:<name>" stands for.
func (s *Set) Driver(name, instance string) (driver.Driver, error) {
	p := s.host.Get(name)
	if p == nil || p.Spec().Kind != sdk.KindDriver {
		return nil, fmt.Errorf("there is no plugin %q of kind driver", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	if err := p.Ready(ctx); err != nil {
		return nil, err
	}
	return NewDriver(func() *plugins.Plugin { return s.host.Get(name) }, instance, s.worker), nil
}

// Notify hands an event to every notifier. It does not wait.
func (s *Set) Notify(e journal.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notifiers.Tell(e)
}

// Stats is the state of every plugin, ready for JSON.
func (s *Set) Stats() []any {
	var all []any
	for _, st := range s.host.Stats() {
		all = append(all, st)
	}
	return all
}

// Close delivers what waits and ends all plugins.
func (s *Set) Close() {
	s.mu.Lock()
	old := s.notifiers
	s.notifiers = &Notifiers{}
	s.mu.Unlock()
	old.Close()
	s.host.Close()
}

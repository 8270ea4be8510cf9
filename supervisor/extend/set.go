package extend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"roundhouse/configs"
	"roundhouse/plugins"
	"roundhouse/plugins/sdk"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/journal"
)

// Set is the plugins that a supervisor runs. A nil one does nothing.
type Set struct {
	host      *plugins.Host
	notifiers *Notifiers
	worker    string
}

// The deadlines of calls: a driver starts and stops things, a notifier reaches across a
// network.
const (
	callWithin  = 30 * time.Second
	startWithin = 15 * time.Second
)

// Open starts the drivers and notifiers of a configuration; nil where it names none.
// worker is the program that a driver is given where a pool has no command.
func Open(all []configs.Plugin, worker string, log *slog.Logger) (*Set, error) {
	var specs []plugins.Spec
	for _, p := range all {
		if p.Kind == sdk.KindDriver || p.Kind == sdk.KindNotifier {
			specs = append(specs, plugins.Spec{Name: p.Name, Kind: p.Kind, Path: p.Path, SHA256: p.SHA256, Open: p.OnFailure == "open", User: p.User})
		}
	}
	if len(specs) == 0 {
		return nil, nil
	}
	s := &Set{host: plugins.NewHost(plugins.Options{Log: log, Deadline: callWithin}), worker: worker}
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	if err := s.host.Apply(ctx, specs); err != nil {
		s.host.Close()
		return nil, err
	}
	var notifiers []*plugins.Plugin
	for _, spec := range specs {
		if spec.Kind == sdk.KindNotifier {
			notifiers = append(notifiers, s.host.Get(spec.Name))
		}
	}
	s.notifiers = NewNotifiers(notifiers, func(name string, e journal.Event, err error) {
		log.Warn("a notifier did not deliver an event", "plugin", name, "event", e.ID, "kind", e.Kind, "error", err)
	})
	return s, nil
}

// Driver is what driver = "plugin:<name>" stands for.
func (s *Set) Driver(name, instance string) (driver.Driver, error) {
	if s == nil {
		return nil, fmt.Errorf("there is no plugin %q", name)
	}
	p := s.host.Get(name)
	if p == nil || p.Spec().Kind != sdk.KindDriver {
		return nil, fmt.Errorf("there is no plugin %q of kind driver", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	if err := p.Ready(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("the driver %q does not come up", name), err)
	}
	return NewDriver(p, instance, s.worker), nil
}

// Notify hands an event to every notifier. It does not wait.
func (s *Set) Notify(e journal.Event) {
	if s != nil {
		s.notifiers.Tell(e)
	}
}

// Close delivers what waits and ends all plugins.
func (s *Set) Close() {
	if s != nil {
		s.notifiers.Close()
		s.host.Close()
	}
}

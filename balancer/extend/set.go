package extend

import (
	"context"
	"log/slog"
	"sync"

	"roundhouse/configs"
	"roundhouse/plugins"
	"roundhouse/plugins/sdk"
)

// Set is the plugins of a door, in the order of the configuration.
type Set struct {
	host    *plugins.Host
	log     *slog.Logger
	filters []filter
	ends    chan end
	ended   chan struct{}
	close   *sync.Once // of ends: a set and its successors share it
}

// filter is one plugin that sees requests.
type filter struct {
	plugin *plugins.Plugin
	name   string
	open   bool // on_failure = "open"
}

// Apply makes the plugins equal to what a worker set names and returns the set to
// use from now on; nil where there are none. What does not come up replaces nothing.
// The options of the first call hold for all that follow. ctx bounds the wait for
// plugins that are new or changed.
func Apply(ctx context.Context, old *Set, all []configs.Plugin, o plugins.Options) (*Set, error) {
	var specs []plugins.Spec
	for _, p := range all {
		if p.Kind == sdk.KindFilter || p.Kind == sdk.KindPolicy {
			specs = append(specs, plugins.Spec{Name: p.Name, Kind: p.Kind, Path: p.Path, SHA256: p.SHA256, Open: p.OnFailure == "open", User: p.User})
		}
	}
	if len(specs) == 0 && old == nil {
		return nil, nil
	}
	s := &Set{log: o.Log}
	if old != nil {
		s.host, s.ends, s.ended, s.close = old.host, old.ends, old.ended, old.close
	} else {
		s.host = plugins.NewHost(o)
		s.ends, s.ended, s.close = make(chan end, mostEnds), make(chan struct{}), new(sync.Once)
		go s.tellEnds()
	}
	if err := s.host.Apply(ctx, specs); err != nil {
		return old, err
	}
	for _, spec := range specs {
		if spec.Kind == sdk.KindFilter {
			s.filters = append(s.filters, filter{s.host.Get(spec.Name), spec.Name, spec.Open})
		}
	}
	return s, nil
}

// Stats is the state of every plugin.
func (s *Set) Stats() []plugins.Stats {
	if s == nil {
		return nil
	}
	return s.host.Stats()
}

// Close ends all plugins, after the last End was told.
func (s *Set) Close() {
	if s == nil {
		return
	}
	s.close.Do(func() { close(s.ends) })
	<-s.ended
	s.host.Close()
}

package balancer

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"roundhouse/balancer/control"
)

// What a door may fail to take up. It keeps the old one then, and serves.
const (
	faultCertificate = "certificate"
	faultPlugins     = "plugins"
	faultSet         = "worker_set"
	faultUsage       = "usage"       // it cannot be written
	faultRequestLog  = "request_log" // nor this
	faultCanaries    = "canaries"    // nor these
	faultCluster     = "kubernetes"  // its pods are not in view
	faultPeers       = "peers"       // a door on another host does not listen
)

var faultNames = [...]string{faultCertificate, faultPlugins, faultSet, faultUsage, faultRequestLog, faultCanaries, faultCluster, faultPeers}

// faults are what the door could not take up, until it can.
type faults struct {
	mu  sync.Mutex
	now map[string]control.Fault

	tried time.Time // when plugins did not come up; under Door.applying
}

// note enters how an attempt has ended; nil: well.
func (f *faults) note(log *slog.Logger, what string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, there := f.now[what]
	switch {
	case err == nil && there:
		delete(f.now, what)
		log.Info("the door takes up what it could not before", "what", what)
	case err == nil || there && old.Error == err.Error():
	default:
		if f.now == nil {
			f.now = map[string]control.Fault{}
		}
		f.now[what] = control.Fault{What: what, Error: err.Error(), Since: time.Now().UTC()}
		log.Error("the door cannot take this up, and goes on with what it has", "what", what, "error", err.Error())
	}
}

// list is the faults there are, by name.
func (f *faults) list() (out []control.Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.now {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b control.Fault) int { return cmp.Compare(a.What, b.What) })
	return out
}

// error is such a fault; nil: there is none.
func (f *faults) error(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one, there := f.now[what]; there {
		return errors.New(one.Error)
	}
	return nil
}

// is reports whether there is such a fault.
func (f *faults) is(what string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, there := f.now[what]
	return there
}

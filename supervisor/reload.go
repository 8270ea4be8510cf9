package supervisor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"roundhouse/balancer/control"
	"roundhouse/configs"
	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
)

// reloading is held through a reload, whose parts lie beside the loop.
type reloading struct {
	sync.Mutex
	failed error // the last one, by this; the loop's
}

// reload takes the configuration file anew, whole or not at all. What may take
// long, reading it, starting plugins, opening drivers, is done beside the loop,
// which goes on watching; what puts it in force is done in the loop.
func (s *Supervisor) reload(w http.ResponseWriter, r *http.Request) {
	s.reloading.Lock() // one after the other
	defer s.reloading.Unlock()
	by := control.Asker(r)
	cfg, opened, err := s.prepareReload(r)
	var changes []string
	asked := s.ask(r.Context(), func() {
		defer s.flushEvents()
		if err == nil {
			changes, err = s.enforce(cfg, opened)
		}
		s.reloading.failed = err
		if err != nil {
			s.events.noteBy(by, "", "", "reload", "refused: "+err.Error())
			return
		}
		s.events.noteBy(by, "", "", "reload", fmt.Sprintf("%d changes", len(changes)))
		s.publish()
	})
	switch {
	case asked != nil:
		fail(w, http.StatusServiceUnavailable, asked.Error())
	case err != nil:
		FailWith(w, err)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"schema": 1, "changes": changes}) // the asker may be gone
	}
}

// serveFileChanges shows how the file differs from what is in force, and changes nothing.
func (s *Supervisor) serveFileChanges(w http.ResponseWriter, r *http.Request) {
	if s.options.Load == nil {
		FailWith(w, core.Conflictf("there is no file to compare with"))
		return
	}
	s.reloading.Lock() // whoever reads the file beside a reload could show half of it
	defer s.reloading.Unlock()
	file, err := s.options.Load()
	if err == nil {
		err = s.replaceable(file)
	}
	var shown FileChanges
	if asked := s.ask(r.Context(), func() { shown = CompareFile(s.plan.file, s.options.File, file, err) }); asked != nil {
		fail(w, http.StatusServiceUnavailable, asked.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(shown) // the asker may be gone
}

// prepareReload reads the file, makes sure that it can be put in force, and
// opens the drivers that it names and that are not open yet.
func (s *Supervisor) prepareReload(r *http.Request) (*configs.Config, map[string]driver.Driver, error) {
	if s.options.Load == nil {
		return nil, nil, core.Conflictf("there is no file to reload")
	}
	cfg, err := s.options.Load()
	if err == nil {
		err = s.replaceable(cfg)
	}
	missing := map[string]string{} // pool by driver
	if err == nil {
		asked := s.ask(r.Context(), func() {
			var plan *deployment
			if plan, err = s.deploymentOf(cfg, s.scalesFor(cfg)); err == nil {
				err = plan.homeless(s.plan)
			}
			if err != nil {
				return
			}
			for _, p := range cfg.Pools {
				if s.runners[p.Driver] == nil && p.Driver != "static" {
					missing[p.Driver] = p.Name
				}
			}
		})
		if asked != nil {
			return nil, nil, asked
		}
	}
	if err == nil && s.options.Changing != nil {
		err = s.options.Changing(cfg)
	}
	opened := map[string]driver.Driver{}
	for name, pool := range missing {
		if err != nil {
			break
		}
		if opened[name], err = s.openDriver(name); err != nil {
			err = fmt.Errorf("pool %q: %w", pool, err)
			delete(opened, name)
		}
	}
	if err != nil {
		closeDrivers(opened)
		return nil, nil, err
	}
	return cfg, opened, nil
}

func closeDrivers(list map[string]driver.Driver) {
	for _, d := range list {
		_ = d.Close() // nothing was begun with it
	}
}

// enforce puts a configuration in force, and lists what it changes. It belongs
// to the loop.
func (s *Supervisor) enforce(cfg *configs.Config, opened map[string]driver.Driver) ([]string, error) {
	old := s.plan.file
	plan, err := s.deploymentOf(cfg, s.scalesFor(cfg))
	if err == nil {
		err = plan.homeless(s.plan)
	}
	if err != nil {
		closeDrivers(opened)
		return nil, err
	}
	next := s.memory.intent.Clone()
	for name, c := range next.Pools {
		if c.Scale != nil && s.recounted(cfg, name) {
			c.Scale = nil
			next.Pools[name] = c
		}
	}
	s.enact(plan)
	s.memory.remember(next)
	for name, d := range opened {
		s.runners[name] = newRunner(name, d)
		s.follow(s.runners[name])
	}
	s.expect()
	return Changes(old, cfg), nil
}

// scalesFor are the numbers of workers that operators have asked for and that another
// configuration leaves in force.
func (s *Supervisor) scalesFor(cfg *configs.Config) map[string]int {
	out := scales(s.memory.intent)
	for name := range out {
		if s.recounted(cfg, name) {
			delete(out, name)
		}
	}
	return out
}

// recounted reports whether another configuration gives a pool another number of
// workers, which then holds instead of what an operator asked for.
func (s *Supervisor) recounted(cfg *configs.Config, pool string) bool {
	old, known := poolOf(s.plan.file, pool)
	next, there := poolOf(cfg, pool)
	return known && there && len(old.Workers) != len(next.Workers)
}

func poolOf(cfg *configs.Config, name string) (configs.Pool, bool) {
	i := slices.IndexFunc(cfg.Pools, func(p configs.Pool) bool { return p.Name == name })
	if i < 0 {
		return configs.Pool{}, false
	}
	return cfg.Pools[i], true
}

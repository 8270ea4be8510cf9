package configs

import (
	"slices"
	"strings"

	"roundhouse/configs/workerid"
)

// checkPlaces finds ports, devices, containers and addresses that two would
// share.
func (d *decoder) checkPlaces(c *Config) {
	ports := map[int]string{}
	for what, listen := range map[string]string{"the door": c.Door.Listen, "the admin API": c.Admin.Listen} {
		if _, port, err := splitListen(listen); err == nil && port != 0 {
			ports[port] = what
		}
	}
	taken := map[string]string{}
	claim := func(path, thing, owner string) {
		if other, ok := taken[thing]; ok {
			d.failf(path, "%s is %s's and %s's", thing, other, owner)
			return
		}
		taken[thing] = owner
	}
	for _, p := range c.Pools {
		for _, w := range p.Workers {
			owner := "worker " + workerid.Of(p.Name, w.Name)
			path := sub(labelled("pool", p.Name), labelled("worker", w.Name))
			if other, ok := ports[w.Port]; ok && w.Port != 0 && p.Driver != "swarm" {
				d.failf(sub(path, "port"), "port %d is %s's and %s's", w.Port, other, owner)
			} else {
				ports[w.Port] = owner
			}
			for _, gpu := range w.GPUs {
				claim(sub(path, "gpus"), "gpu "+gpu, owner)
			}
			if w.Takeover != "" {
				claim(sub(path, "takeover"), "container "+w.Takeover, owner)
			}
			if w.URL != "" {
				claim(sub(path, "url"), "url "+strings.TrimRight(w.URL, "/"), owner)
			}
			if p.Driver == "docker" && d.written(path) {
				claim(path, "container name "+w.Name, owner)
			}
		}
	}
}

// checkRoutes checks names, targets and the way that routes lead.
func (d *decoder) checkRoutes(c *Config) {
	owner := map[string]string{} // route name or alias → route
	for _, r := range c.Routes {
		path := labelled("route", r.Name)
		if r.Name == "" || slices.Contains(r.Aliases, "") {
			d.failf(path, "route %q: a name is not empty", r.Name)
		}
		for _, name := range append([]string{r.Name}, r.Aliases...) {
			if other, ok := owner[name]; ok {
				d.failf(sub(path, "aliases"), "%q is a name of route %q and of route %q", name, other, r.Name)
				continue
			}
			owner[name] = r.Name
		}
		sum := 0
		for _, t := range r.Targets {
			sum += t.Weight
		}
		if len(r.Targets) == 0 {
			d.failf(path, `route %q has no target; write target "model" { weight = 1 }`, r.Name)
		} else if sum == 0 && r.Fallback == "" {
			d.failf(path, "route %q: all weights are 0 and there is no fallback, so nothing would serve it", r.Name)
		}
		if r.Fallback != "" && r.Fallback == r.Name {
			d.failf(sub(path, "fallback"), "route %q falls back to itself", r.Name)
		}
	}
	known := knownModels(c)
	for _, r := range c.Routes {
		if known == nil {
			break
		}
		for _, t := range r.Targets {
			if !slices.Contains(known, t.Model) {
				d.failf(sub(labelled("route", r.Name), labelled("target", t.Model)), "no pool serves %q%s", t.Model, suggest(t.Model, known))
			}
		}
		if r.Fallback != "" && !slices.Contains(known, r.Fallback) {
			d.failf(sub(labelled("route", r.Name), "fallback"), "%q is neither a pool nor a model that one serves%s", r.Fallback, suggest(r.Fallback, known))
		}
	}
	for i := range c.Routes {
		checkCanary(d, &c.Routes[i], owner, known)
	}
	d.checkCycles(c, owner, known)
}

// checkCycles follows targets that are themselves routes. A target that a
// pool is known to serve leads there and no further.
func (d *decoder) checkCycles(c *Config, owner map[string]string, known []string) {
	routes := map[string]Route{}
	for _, r := range c.Routes {
		routes[r.Name] = r
	}
	for _, start := range c.Routes {
		seen := map[string]bool{}
		next := []string{start.Name}
		for len(next) > 0 {
			r := routes[next[0]]
			next = next[1:]
			for _, name := range append(targetNames(r), r.Fallback) {
				to, isRoute := owner[name]
				if !isRoute || name == r.Name || slices.Contains(known, name) {
					continue
				}
				if to == start.Name {
					d.failf(labelled("route", start.Name), "route %q leads back to itself by way of %q; a target is a model", start.Name, r.Name)
					return
				}
				if !seen[to] {
					seen[to] = true
					next = append(next, to)
				}
			}
		}
	}
}

func targetNames(r Route) []string {
	names := make([]string, len(r.Targets))
	for i, t := range r.Targets {
		names[i] = t.Model
	}
	return names
}

// knownModels returns the names of pools and of what they serve, or nil where
// some pool's models are only learned from its workers.
func knownModels(c *Config) []string {
	var names []string
	for _, p := range c.Pools {
		if len(p.Engine.ServedModelName) == 0 || len(p.Engine.Args) > 0 || p.Container.Command != nil {
			return nil
		}
		names = append(names, p.Name)
		names = append(names, p.Engine.ServedModelName...)
		for _, a := range p.Adapters {
			names = append(names, a.Name)
		}
	}
	return names
}

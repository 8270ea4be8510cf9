package configs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// RouteCanary is a model, an adapter perhaps, that a route tries on a share of its
// conversations, which grows by steps while it is no worse than the targets.
type RouteCanary struct {
	Model       string    `json:"model"`
	Steps       []float64 `json:"steps"`        // shares of the requests, each above the one before
	MinRequests int       `json:"min_requests"` // of the model, at each step
	Hold        Duration  `json:"hold"`         // each step's least time
	Promote     bool      `json:"promote"`      // after the last step it gets all; else an operator is waited for
}

func newRouteCanary(model string) RouteCanary {
	return RouteCanary{Model: model, Steps: []float64{0.05, 0.25, 0.5}, MinRequests: 200, Hold: Duration(10 * time.Minute), Promote: true}
}

// Digest names what a trial is of: with another model, or other steps, it begins anew.
func (c *RouteCanary) Digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %v", c.Model, c.Steps))
	return hex.EncodeToString(sum[:8])
}

// checkCanary holds the canary of a route to what can be tried. owner has the routes' names.
func checkCanary(d *decoder, r *Route, owner map[string]string, known []string) {
	c := r.Canary
	if c == nil {
		return
	}
	path := sub(labelled("route", r.Name), labelled("canary", c.Model))
	sum := 0
	for _, t := range r.Targets {
		sum += t.Weight
	}
	_, isRoute := owner[c.Model]
	switch {
	case slices.Contains(targetNames(*r), c.Model):
		d.failf(path, "canary %q is a target of the route, too: it is held against the others", c.Model)
	case sum == 0:
		d.failf(path, "canary %q: no target has a weight, so there is nothing to hold it against", c.Model)
	case known != nil && !slices.Contains(known, c.Model):
		d.failf(path, "no pool serves %q%s", c.Model, suggest(c.Model, known))
	case isRoute && !slices.Contains(known, c.Model):
		d.failf(path, "canary %q is a route; it is a model", c.Model)
	}
	steps := sub(path, "steps")
	if len(c.Steps) == 0 {
		d.failf(steps, "steps is empty; write shares such as [0.05, 0.25, 0.5]")
	}
	for i, s := range c.Steps {
		if s == 0 || i > 0 && s <= c.Steps[i-1] {
			d.failf(steps, "steps has %g in its place %d: each share is above the one before, and the first above 0", s, i+1)
			return
		}
	}
}

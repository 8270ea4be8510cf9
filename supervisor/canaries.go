package supervisor

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"roundhouse/balancer/control"
)

// canaries are the trials of routes' new models, of each as the door has it that is
// furthest on.
func (g *gate) trials() []control.CanaryShown {
	out := []control.CanaryShown{}
	for _, d := range g.living() {
		if d.state == nil {
			continue
		}
		for _, c := range d.state.Canaries {
			i := slices.IndexFunc(out, func(o control.CanaryShown) bool { return o.Route == c.Route })
			switch {
			case i < 0:
				out = append(out, c)
			case c.Serial > out[i].Serial:
				out[i] = c
			}
		}
	}
	slices.SortFunc(out, func(a, b control.CanaryShown) int { return strings.Compare(a.Route, b.Route) })
	return out
}

// noteCanaries has an event for each trial that has moved on.
func (g *gate) noteCanaries(e *events) {
	for _, c := range g.trials() {
		last, known := g.canaries[c.Route]
		if g.canaries == nil {
			g.canaries = map[string]canaryNoted{}
		}
		g.canaries[c.Route] = canaryNoted{c.Model, c.Serial}
		if !known || last.serial >= c.Serial && last.model == c.Model {
			continue
		}
		kind, text := "canary", fmt.Sprintf("route %q: %.0f %% of the requests go to %s", c.Route, c.Share*100, c.Model)
		switch c.State {
		case control.CanaryRolledBack:
			kind, text = "rolled_back", fmt.Sprintf("route %q: no request goes to %s any more", c.Route, c.Model)
		case control.CanaryPromoted:
			kind, text = "promoted", fmt.Sprintf("route %q: all requests go to %s", c.Route, c.Model)
		}
		if c.Reason != nil {
			text += ": " + *c.Reason
		}
		e.note("", "", kind, text)
	}
}

// canaryNoted is how far on a trial was when an event told of it.
type canaryNoted struct {
	model  string
	serial uint64
}

// commandCanary passes a command about a trial on to every door.
func commandCanary(s *Supervisor, w http.ResponseWriter, r *http.Request) {
	var doors []*door
	if err := s.ask(r.Context(), func() { doors = s.gate.living() }); err != nil {
		fail(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/api") + "?by=" + url.QueryEscape(r.Header.Get(control.OperatorHeader))
	status, data := 0, []byte(nil)
	for _, d := range doors {
		got, answer, err := d.ask(r.Context(), http.MethodPost, path, nil)
		if err == nil && (status == 0 || status >= http.StatusBadRequest) {
			status, data = got, answer
		}
	}
	if status == 0 {
		fail(w, http.StatusServiceUnavailable, "no door answers")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the asker may be gone
}

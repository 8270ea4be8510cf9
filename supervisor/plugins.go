package supervisor

import (
	"encoding/json"
	"net/http"
)

// servePlugins lists the plugins of every door and the supervisor's own.
func (s *Supervisor) servePlugins(w http.ResponseWriter, r *http.Request) {
	var doors []*door
	if err := s.ask(r.Context(), func() { doors = s.gate.living() }); err != nil {
		fail(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	all := []any{}
	for _, d := range doors {
		status, answer, err := d.ask(r.Context(), http.MethodGet, "/plugins", nil)
		var of []json.RawMessage
		if err != nil || status != http.StatusOK || json.Unmarshal(answer, &of) != nil {
			continue // a door that is just being replaced
		}
		for _, p := range of {
			all = append(all, p)
		}
	}
	if s.options.Plugins != nil {
		all = append(all, s.options.Plugins()...)
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"schema": 1, "plugins": all})
}

package supervisor

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/keyfile"
	"roundhouse/configs"
)

// keysAPI makes, lists and revokes keys.
func (s *Supervisor) keysAPI() *keyfile.API {
	return &keyfile.API{Store: s.keys, Changed: s.keysChanged,
		Configured: func(ctx context.Context) (keys []configs.Key, file string, err error) {
			err = s.ask(ctx, func() { keys, file = s.plan.config.Door.Keys, s.options.File })
			return keys, file, err
		},
		Used: func(ctx context.Context) *control.KeysUse {
			var all []control.KeysUse
			askDoors(ctx, s, "/keys", &all)
			return joinUse(all)
		},
	}
}

// keysChanged publishes a change of keys, and waits a while until every door has it.
func (s *Supervisor) keysChanged(ctx context.Context, by, what string) (t control.Taken) {
	t.Waiting = []string{}
	if s.ask(ctx, func() {
		s.events.noteBy(by, "", "", "key", what)
		s.flushEvents()
		s.publish()
	}) != nil {
		return t
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(doorTimeout)
	for {
		var now control.Taken
		now.Waiting = []string{}
		if s.ask(ctx, func() {
			for _, d := range s.gate.living() {
				if d.acked(s.set.Load()) {
					now.Doors++
				} else {
					now.Waiting = append(now.Waiting, d.id)
				}
			}
		}) != nil {
			return t
		}
		if t = now; len(t.Waiting) == 0 {
			return t
		}
		select {
		case <-ctx.Done():
			return t
		case <-late:
			return t
		case <-tick.C:
		}
	}
}

// joinUse takes the largest that any door tells: each tells of all doors, some a moment
// late.
func joinUse(all []control.KeysUse) *control.KeysUse {
	if len(all) == 0 {
		return nil
	}
	out := all[0]
	at := map[string]int{}
	for i, k := range out.Keys {
		at[k.Name] = i
	}
	for _, u := range all[1:] {
		for _, k := range u.Keys {
			i, known := at[k.Name]
			if !known {
				i = len(out.Keys)
				at[k.Name] = i
				out.Keys = append(out.Keys, k)
			}
			had := &out.Keys[i]
			had.Day, had.Month, had.Live = had.Day.Most(k.Day), had.Month.Most(k.Month), max(had.Live, k.Live)
		}
	}
	return &out
}

// askDoors asks all living doors for the same, and gathers those answers that come.
func askDoors[T any](ctx context.Context, s *Supervisor, path string, into *[]T) {
	var doors []*door
	if s.ask(ctx, func() { doors = s.gate.living() }) != nil {
		return
	}
	answers := make(chan *T, len(doors))
	for _, d := range doors {
		go func() {
			var v T
			if err := d.get(ctx, path, &v); err != nil {
				answers <- nil
				return
			}
			answers <- &v
		}()
	}
	for range doors {
		if v := <-answers; v != nil {
			*into = append(*into, *v)
		}
	}
}

// serveUsage answers what was used, by key, model and day.
func (s *Supervisor) serveUsage(w http.ResponseWriter, r *http.Request) {
	if err := control.CheckDays(r.URL.Query()); err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	var all []control.Usage
	askDoors(r.Context(), s, "/usage?"+r.URL.RawQuery, &all)
	if len(all) == 0 {
		fail(w, http.StatusServiceUnavailable, "no door answers: use is counted there")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(control.SumUsage(all)) // the asker may be gone
}

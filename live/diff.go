package live

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"time"

	"roundhouse/balancer/control"
)

// lastSent is what the streams were told last.
type lastSent struct {
	state   State
	workers map[string]sentWorker
}

// sentWorker is a worker as it was told, and when.
type sentWorker struct {
	shown control.WorkerShown
	at    time.Time // when its ages were
}

// freshReport is an age of a report below which one is as good as another.
const freshReport = 5.0

// workerFields are the names of a worker's fields, in their order.
var workerFields = func() (names []string) {
	t := reflect.TypeFor[control.WorkerShown]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}()

// change is how a state differs from what was told, which it is then.
func (t *lastSent) change(s *State) Change {
	c := Change{At: s.At}
	old := &t.state
	first := t.workers == nil
	if first {
		t.workers = map[string]sentWorker{}
	}
	if !reflect.DeepEqual(s.Verdict, old.Verdict) {
		c.Verdict = &s.Verdict
	}
	if !reflect.DeepEqual(s.Door, old.Door) {
		c.Door = &s.Door
	}
	if s.Supervisor != nil && !reflect.DeepEqual(s.Supervisor, old.Supervisor) {
		c.Supervisor = s.Supervisor
	}
	if doorsDiffer(s.Doors, old.Doors) {
		c.Doors = s.Doors
	}
	if !reflect.DeepEqual(s.Pools, old.Pools) {
		c.Pools = &s.Pools
	}
	if !reflect.DeepEqual(s.Figures, old.Figures) {
		c.Figures = &s.Figures
	}
	if !reflect.DeepEqual(s.Rotations, old.Rotations) {
		c.Rotations = &s.Rotations
	}
	if !reflect.DeepEqual(s.Schedules, old.Schedules) {
		c.Schedules = &s.Schedules
	}
	if len(s.Canaries)+len(old.Canaries) > 0 && !reflect.DeepEqual(s.Canaries, old.Canaries) {
		c.Canaries = &s.Canaries
	}
	seen := make(map[string]bool, len(s.Workers))
	for i := range s.Workers {
		w := &s.Workers[i]
		seen[w.ID] = true
		if fields := t.worker(w, s.At); fields != nil {
			c.Workers = append(c.Workers, fields)
		}
	}
	for id := range t.workers {
		if !seen[id] {
			delete(t.workers, id)
			c.Gone = append(c.Gone, id)
		}
	}
	t.state = *s
	return c
}

// doorsDiffer reports whether doors are others than they were, by more than fresh ages.
func doorsDiffer(a, b []OneDoor) bool {
	if len(a) != len(b) {
		return true
	}
	for i := range a {
		x, y := a[i], b[i]
		if alike(x.ReportAge, y.ReportAge) {
			x.ReportAge = y.ReportAge
		}
		if !reflect.DeepEqual(x, y) {
			return true
		}
	}
	return false
}

// alike reports whether two ages of reports are both fresh.
func alike(a, b *float64) bool { return a != nil && b != nil && *a < freshReport && *b < freshReport }

// worker is the fields of a worker that are others than they were told, with its id; nil:
// there are none.
func (t *lastSent) worker(w *control.WorkerShown, at time.Time) map[string]json.RawMessage {
	was, known := t.workers[w.ID]
	next := *w
	base := at
	if known {
		if alike(next.KV.ReportAgeSeconds, was.shown.KV.ReportAgeSeconds) {
			next.KV.ReportAgeSeconds = was.shown.KV.ReportAgeSeconds
		}
		// An age counts on by itself: it was told if the same beginning was.
		a, b := next.Requests.OldestSeconds, was.shown.Requests.OldestSeconds
		if a != nil && b != nil && math.Abs(at.Sub(was.at).Seconds()-(*a-*b)) < 1 {
			next.Requests.OldestSeconds, base = b, was.at
		}
	}
	now, before := reflect.ValueOf(&next).Elem(), reflect.ValueOf(&was.shown).Elem()
	var out map[string]json.RawMessage
	for i, name := range workerFields {
		x := now.Field(i)
		if known && reflect.DeepEqual(x.Interface(), before.Field(i).Interface()) {
			continue
		}
		if out == nil {
			out = map[string]json.RawMessage{"id": encoded(w.ID)}
		}
		out[name] = encoded(reflect.ValueOf(w).Elem().Field(i).Interface())
		if name == "requests" {
			base = at
			next.Requests = w.Requests
		}
	}
	t.workers[w.ID] = sentWorker{next, base}
	return out
}

func encoded(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return data
}

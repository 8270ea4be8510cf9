package live

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/configs/workerid"
	"roundhouse/live/history"
	"roundhouse/measure/verdict"
)

// mostMarks is how many events are kept at hand, and shownMarks how many an answer has.
const (
	mostMarks  = 2000
	shownMarks = 200
	mostOfPool = 64 // workers in one answer
)

// marking are the kinds of events that explain a step in a curve.
var marking = []string{
	"started", "crashed", "failed", "stopped", "lost", "quarantined", "ejected", "drain_forced", "rotation", "rolled_back", "reload", "scale", "upgrade", "door",
}

// mark keeps events for the history.
func (h *Hub) mark(list ...Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range list {
		if slices.Contains(marking, e.Kind) {
			h.marks = append(h.marks, e)
		}
	}
	if n := len(h.marks) - mostMarks; n > 0 {
		h.marks = slices.Delete(h.marks, 0, n)
	}
}

// Past is GET /api/history.
type Past struct {
	Schema int       `json:"schema"`
	At     time.Time `json:"at"`
	From   time.Time `json:"from"`
	Step   int       `json:"step_seconds"`
	Begins time.Time `json:"begins"`
	Series []Curve   `json:"series"`
	Marks  []Event   `json:"marks"`
}

// Curve is one series of a history.
type Curve struct {
	Name   string     `json:"name"`
	Unit   string     `json:"unit"`
	Pool   *string    `json:"pool"`
	Worker *string    `json:"worker"`
	Begins *time.Time `json:"begins"`
	Values []*float64 `json:"values"`
}

// History serves GET /api/history.
func (h *Hub) History(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := parseRange(q.Get("range"))
	if err != nil {
		control.Fail(w, http.StatusBadRequest, err.Error())
		return
	}
	points := 360
	if given := q.Get("points"); given != "" {
		if points, err = strconv.Atoi(given); err != nil || points < 1 || points > 2000 {
			control.Fail(w, http.StatusBadRequest, "points is "+strconv.Quote(given)+"; give 1 to 2000")
			return
		}
	}
	now := time.Now().UTC()
	window := history.WindowOf(now, back, points)
	out := Past{Schema: 1, At: now, From: window.From, Step: int(window.Step / time.Second), Begins: h.store.Begins(), Series: []Curve{}, Marks: []Event{}}
	if out.Begins.IsZero() {
		out.Begins = now
	}
	wanted := func(name string) bool { return true }
	if names := q.Get("series"); names != "" {
		list := strings.Split(names, ",")
		for _, name := range list {
			if units[name] == "" {
				control.Fail(w, http.StatusBadRequest, "there is no series "+strconv.Quote(name))
				return
			}
		}
		wanted = func(name string) bool { return slices.Contains(list, name) }
	}
	pool, worker := q.Get("pool"), q.Get("worker")
	if worker == "" {
		out.Series = h.poolCurves(window, pool, wanted)
	} else {
		out.Series = h.workerCurves(window, pool, worker, wanted)
	}
	out.Marks = h.marksOf(window, pool, worker)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // the asker may be gone
}

// parseRange reads how far back is looked: a duration, or so many days.
func parseRange(text string) (time.Duration, error) {
	if text == "" {
		return 15 * time.Minute, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= 30 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d > 0 && d <= 30*24*time.Hour {
		return d, nil
	}
	return 0, rangeError(text)
}

type rangeError string

// Error implements error.
func (e rangeError) Error() string {
	return "range is " + strconv.Quote(string(e)) + "; give 15m, 1h, 6h, 24h, 7d, or any time up to 30d"
}

func (h *Hub) marksOf(w history.Window, pool, worker string) []Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []Event{}
	for _, e := range h.marks {
		if e.At.Before(w.From) || pool != "" && e.Pool != pool || worker != "" && worker != "*" && e.Worker != worker {
			continue
		}
		out = append(out, e)
	}
	return out[max(0, len(out)-shownMarks):]
}

// Thresholds serves GET /api/thresholds.
func Thresholds(w http.ResponseWriter, _ *http.Request) {
	type shown struct {
		Code  string            `json:"code"`
		Text  string            `json:"text"`
		Below bool              `json:"below"`
		Value *float64          `json:"value"`
		Unit  string            `json:"unit"`
		For   float64           `json:"for_seconds"`
		Level *verdict.Severity `json:"level"`
		Rule  *string           `json:"rule"`
		Alert *string           `json:"alert"`
	}
	out := struct {
		Schema int     `json:"schema"`
		Table  []shown `json:"thresholds"`
	}{Schema: 1}
	for _, t := range verdict.Table {
		out.Table = append(out.Table, shown{t.Code, t.Text, t.Below, control.Known(t.Value), t.Unit, t.For.Seconds(), control.Known(t.Severity), control.Known(t.Rule), control.Known(t.Alert)})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // the asker may be gone
}

// nullable turns what is not known into null.
func nullable(values []float64) []*float64 {
	out := make([]*float64, len(values))
	for i := range values {
		if !math.IsNaN(values[i]) {
			v := round(values[i])
			out[i] = &v
		}
	}
	return out
}

func (h *Hub) curve(k history.Key, w history.Window) Curve {
	values, begins := h.store.Read(k, w)
	pool := k.Pool
	return Curve{Name: k.Name, Unit: units[k.Name], Pool: &pool, Worker: control.Known(k.Worker), Begins: control.Known(begins), Values: nullable(values)}
}

// workerCurves are the curves of one worker, or of each of a pool.
func (h *Hub) workerCurves(w history.Window, pool, worker string, wanted func(string) bool) []Curve {
	out, seen := []Curve{}, map[string]bool{}
	if worker != "*" {
		pool = workerid.Pool(worker)
	}
	for _, k := range h.store.Keys(func(k history.Key) bool {
		return k.Worker != "" && k.Pool == pool && (worker == "*" || k.Worker == worker) && wanted(k.Name)
	}) {
		if seen[k.Worker] = true; len(seen) > mostOfPool {
			break
		}
		out = append(out, h.curve(k, w))
	}
	return out
}

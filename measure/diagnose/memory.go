package diagnose

import (
	"fmt"
	"math"
	"time"

	"roundhouse/measure/stat"
)

// memoryLeak finds workers whose host or device memory grows on and on.
func (v *evidence) memoryLeak() ([]Finding, string) {
	var found []Finding
	for i := range v.workers {
		w := &v.workers[i]
		if !w.steady {
			continue
		}
		host := v.Gauge("roundhouse_worker_memory_bytes", w.door())
		device := v.Gauge("roundhouse_device_memory_used_bytes", w.own())
		room := median(v.Gauge("roundhouse_device_memory_total_bytes", w.own()))
		for _, m := range []struct {
			name   string
			values []float64
			room   float64
		}{{"host memory", host, math.NaN()}, {"device memory", device, room}} {
			if f := v.creeps(w, m.name, m.values, m.room); f != nil {
				found = append(found, *f)
			}
		}
	}
	return found, ""
}

// creeps finds a trend in a worker's memory; the first quarter of the recording is
// where caches fill.
func (v *evidence) creeps(w *worker, name string, values []float64, room float64) *Finding {
	var hours, bytes []float64
	from := v.Times[0].Add(min(time.Hour, v.Span()/4))
	for i, b := range values {
		if !math.IsNaN(b) && v.Times[i].After(from) {
			hours, bytes = append(hours, v.Times[i].Sub(from).Hours()), append(bytes, b)
		}
	}
	hours, bytes = thinned(hours, bytes)
	if len(bytes) < 12 {
		return nil
	}
	slope := stat.TheilSen(hours, bytes)
	_, p := stat.MannKendall(bytes)
	first, end := bytes[0], bytes[len(bytes)-1]
	grows := slope*v.t.Memory.Within.Hours()/first > v.t.Memory.Growth
	full := !math.IsNaN(room) && end+slope*v.t.Memory.Out.Hours() > room
	if slope <= 0 || p >= 0.01 || !grows && !full {
		return nil
	}
	served := zeroed(v.finished(w))
	each := ""
	if served >= v.t.Finished {
		each = fmt.Sprintf(", %.1f MiB for each 1000 answers", (end-first)/served*1000/(1<<20))
	}
	f := &Finding{
		Severity: Warn, Object: w.id,
		Says:     fmt.Sprintf("its %s grows by %.1f %% an hour%s", name, 100*slope/first, each),
		Cause:    "the engine does not give back memory; it will end for want of it",
		Evidence: []Evidence{figure(name, bytes, "%.0f → %.0f MiB", first/(1<<20), end/(1<<20))},
		Change:   v.trigger(w, "memory_growth = 0.2", "turns a worker that has grown by a fifth"),
		Command:  "roundhouse rotate " + w.id,
		Helped:   "after its turn it holds what it held at first",
	}
	if full {
		f.Severity = Critical
		f.Says += fmt.Sprintf("; it is full in %.0f h", (room-end)/slope)
	}
	return f
}

// thinned are at most 200 points of a course: the tests compare all pairs.
func thinned(x, y []float64) (tx, ty []float64) {
	step := 1 + len(x)/200
	for i := 0; i < len(x); i += step {
		tx, ty = append(tx, x[i]), append(ty, y[i])
	}
	return tx, ty
}

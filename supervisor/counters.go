package supervisor

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"roundhouse/configs/workerid"
	"roundhouse/supervisor/core"
)

// counters count what the metrics tell.
type counters struct {
	starts    map[[3]string]float64 // pool, worker, reason
	rotations map[[2]string]float64 // pool, result
	success   map[string]time.Time  // of the last rotation that got through
	seconds   *prometheus.HistogramVec
}

func newCounters() counters {
	return counters{starts: map[[3]string]float64{}, rotations: map[[2]string]float64{}, success: map[string]time.Time{},
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "roundhouse_turn_seconds", Help: "How long the parts of a worker's turn take.", Buckets: prometheus.ExponentialBuckets(0.25, 2, 13),
		}, []string{"pool", "phase"}),
	}
}

// count takes one decision's event into the counters.
func (c *counters) count(e core.Event) {
	switch e.Kind {
	case "started":
		reason := "start"
		for _, word := range []string{"rotation", "crashed", "roll-back", "hung", "does not answer", "started by"} {
			if strings.Contains(e.Text, word) {
				reason = strings.ReplaceAll(word, " ", "_")
				break
			}
		}
		_, name := workerid.Split(e.Worker)
		c.starts[[3]string{e.Pool, name, reason}]++
	case "missed":
		c.rotations[[2]string{e.Pool, "missed"}]++
	case "rotation":
		for _, result := range []core.RotationState{core.Done, core.RolledBack, core.Halted} {
			if strings.Contains(e.Text, " is "+string(result)+":") {
				c.rotations[[2]string{e.Pool, string(result)}]++
				if result == core.Done {
					c.success[e.Pool] = time.Now()
				}
			}
		}
	}
}

// turns takes the parts of turns that end with the next intent.
func (c *counters) turns(now, next core.Intent, at time.Time) {
	for id, w := range next.Workers {
		old, ok := now.Workers[id]
		if !ok || old.Phase == w.Phase || w.Phase == core.Failed {
			continue
		}
		switch old.Phase {
		case core.Draining, core.Drained, core.Starting, core.Warming:
			pool := workerid.Pool(id)
			c.seconds.WithLabelValues(pool, string(old.Phase)).Observe(at.Sub(old.Since).Seconds())
		}
	}
}

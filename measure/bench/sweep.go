package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"roundhouse/measure/stat"
)

// SweepOptions are how a sweep looks for the greatest rate that a service bears.
type SweepOptions struct {
	Goal        Goal
	Attainment  float64       // the share of requests that must meet the goal, e.g. 0.99
	MinRequests int           // of each run
	MinTime     time.Duration // of each run
	Precision   float64       // the bisection ends when failing/passing is at most 1 + this
	MaxRuns     int
}

// SweepRun is one run with its outcome.
type SweepRun struct {
	Measurement
	Good      float64 // share of requests within the goal, from due
	Bound     float64 // its one-sided 95 % lower bound
	Saturated bool
	Pass      bool
	Why       string // why it does not pass
}

// Sweep finds the greatest rate whose requests meet the goal. run measures at one rate,
// for at least a number of requests and a time. Sweep doubles the rate from
// that of one request after the other until a rate fails, bisects the ratio, and
// runs the last rate that passed again. The runs come in the order in which they
// ran; rate is the greatest that passed both times, 0 if none did.
func Sweep(ctx context.Context, serial float64, o SweepOptions, run func(rate float64, requests int) Measurement) (runs []SweepRun, rate float64) {
	try := func(rate float64) bool {
		l := judgeRun(run(rate, max(o.MinRequests, int(math.Ceil(rate*o.MinTime.Seconds())))), o)
		runs = append(runs, l)
		return l.Pass
	}
	room := func() bool { return ctx.Err() == nil && len(runs) < o.MaxRuns }
	pass, fail := 0.0, 0.0
	for at := serial; fail == 0 && room(); at *= 2 {
		if try(at) {
			pass = at
		} else {
			fail = at
		}
	}
	for pass == 0 && fail > 0 && fail > serial/16 && room() { // even the first was too much
		if at := fail / 2; try(at) {
			pass = at
		} else {
			fail = at
		}
	}
	for pass > 0 && fail > pass*(1+o.Precision) && room() {
		if at := math.Sqrt(pass * fail); try(at) {
			pass = at
		} else {
			fail = at
		}
	}
	for pass > 0 && room() && !try(pass) { // once more: a rate that passed by luck does not count
		pass /= 1 + o.Precision
	}
	if ctx.Err() != nil {
		return runs, 0
	}
	return runs, pass
}

func judgeRun(l Measurement, o SweepOptions) SweepRun {
	s := SweepRun{Measurement: l, Saturated: Saturated(l.Outcome, l.Metrics)}
	n := l.Metrics.Completed + l.Metrics.Failed
	if n > 0 {
		s.Good = float64(l.Metrics.GoodDue) / float64(n)
		s.Bound = stat.WilsonLower(l.Metrics.GoodDue, n)
	}
	switch {
	case !l.Verdict.Valid:
		s.Why = l.Verdict.Reasons[0]
	case s.Saturated:
		s.Why = "saturated: fewer requests ended than came"
	case s.Bound < o.Attainment:
		s.Why = fmt.Sprintf("%.1f %% of %d requests met the goal; at least %.1f %% did with 95 %% confidence, want %.1f %%", 100*s.Good, n, 100*s.Bound, 100*o.Attainment)
	default:
		s.Pass = true
	}
	return s
}

package bench

import (
	"fmt"
	"math"
	"time"

	"roundhouse/measure/stat"
)

// Verdict reports whether a run's figures can be believed.
type Verdict struct {
	Valid   bool     `json:"valid"`
	Reasons []string `json:"reasons,omitempty"` // why it is not valid
	Notes   []string `json:"notes,omitempty"`   // what a reader of the figures should know
}

// The bounds of a valid run.
const (
	mostLag   = 10 * time.Millisecond // median of sent − due of an open loop without a cap
	leastRate = 0.98                  // of the rate that was asked for
	mostShare = 0.8                   // of the client's cores
)

// Judge looks at the run itself: the schedule, the client, the number of samples.
func Judge(p Plan, l Load, o Outcome, m Metrics) Verdict {
	v := Verdict{Valid: true}
	wrong := func(format string, args ...any) {
		v.Valid = false
		v.Reasons = append(v.Reasons, fmt.Sprintf(format, args...))
	}
	note := func(format string, args ...any) { v.Notes = append(v.Notes, fmt.Sprintf(format, args...)) }

	if m.Completed == 0 {
		wrong("no request came to its end%s", firstError(o.Samples))
	}
	open := !math.IsInf(l.Rate, 1) || l.RampUp != ""
	if open && p.Concurrency == 0 && m.Completed > 0 && m.ClientQueue.Median > ms(mostLag) {
		wrong("the client was late: half of the requests were sent more than %.1f ms after they were due (at most %d ms)", m.ClientQueue.Median, mostLag/time.Millisecond)
	}
	if rate := reached(o.Samples); open && l.RampUp == "" && !o.Stopped && len(o.Samples) > 20 && rate < leastRate*l.Rate {
		wrong("%.3g requests/s were sent of the %.3g/s that were asked for", rate, l.Rate)
	}
	if share := o.Client.Share(); share > mostShare {
		wrong("the client took %.0f %% of its %d cores: its figures may be its own; run it on another machine, or give it cores", 100*share, o.Client.Cores)
	}
	if p.Concurrency > 0 && open && m.ClientQueue.Quantile(99) > ms(mostLag) {
		note("the cap of %d requests at once held requests back, by %.0f ms at p99: ttft and e2el begin after that, ttft_due and e2el_due before", p.Concurrency, m.ClientQueue.Quantile(99))
	}
	if m.Failed > 0 {
		note("%d of %d requests failed and are in no latency%s", m.Failed, len(o.Samples), firstError(o.Samples))
	}
	if m.Wrong > 0 {
		wrong("%d answers are not the right ones", m.Wrong)
	}
	if m.Completed > 0 && m.Completed < 300 {
		note("%d samples do not bear a p99 (300 do); it is printed as vLLM does, and has no interval", m.Completed)
	}
	if m.Completed > 0 && m.EventsPerToken > 0 && m.EventsPerToken < 0.9 {
		note("%.2f events a token: ITL is the gap of events; --itl tokens divides it", m.EventsPerToken)
	}
	if o.Stopped {
		note("stopped before its end: %d requests were cut", m.Cut)
	}
	return v
}

// reached is the rate at which requests were sent.
func reached(samples []Sample) float64 {
	n := len(samples)
	if n < 2 {
		return 0
	}
	last := time.Duration(0)
	for i := range samples {
		last = max(last, samples[i].Sent)
	}
	return float64(n) / last.Seconds()
}

func firstError(samples []Sample) string {
	for i := range samples {
		if samples[i].Err != "" {
			return "; the first: " + samples[i].Err
		}
	}
	return ""
}

// Saturated reports whether the service fell behind the load: in the steady window
// it ended fewer requests than came, or the requests in flight and the first
// tokens' times both rose all along.
func Saturated(o Outcome, m Metrics) bool {
	window, took := Steady(o.Samples)
	if took <= 0 {
		return false
	}
	from, to := window[0].Sent, window[len(window)-1].Sent
	ended := 0
	for i := range o.Samples {
		if s := &o.Samples[i]; s.OK() && s.End >= from && s.End < to {
			ended++
		}
	}
	behind := float64(ended) < 0.98*float64(len(window)) && float64(len(window)-ended) > 3*math.Sqrt(float64(len(window)))
	return behind || (m.TTFT.Median > 2500 && rising(window, func(s *Sample) float64 { return s.TTFT().Seconds() }) && rising(window, flying(o.Samples)))
}

// flying counts the requests that were under way when one was sent.
func flying(samples []Sample) func(*Sample) float64 {
	return func(at *Sample) float64 {
		n := 0.0
		for i := range samples {
			if s := &samples[i]; s.Sent <= at.Sent && at.Sent < s.End {
				n++
			}
		}
		return n
	}
}

// rising reports whether a figure's slope over time is positive with 95 % confidence.
func rising(window []Sample, figure func(*Sample) float64) bool {
	var x, y []float64
	for i := range window {
		if s := &window[i]; s.OK() {
			x, y = append(x, s.Sent.Seconds()), append(y, figure(s))
		}
	}
	slope, deviation, ok := stat.Slope(x, y)
	return ok && slope > 1.645*deviation
}

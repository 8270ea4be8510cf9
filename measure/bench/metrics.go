package bench

import (
	"time"

	"roundhouse/measure/stat"
)

// Stats are the statistics of one latency, in milliseconds.
type Stats struct {
	Mean, Median, Deviation float64
	Percentiles             []float64 // of the asked points
	sorted                  []float64 // ms
}

func statsOf(ms []float64, points []float64) Stats {
	sorted := stat.Sorted(ms)
	s := Stats{Mean: stat.Mean(sorted), Median: stat.Percentile(sorted, 50), Deviation: stat.Deviation(sorted), sorted: sorted}
	for _, p := range points {
		s.Percentiles = append(s.Percentiles, stat.Percentile(sorted, p))
	}
	return s
}

// Quantile returns any percentile of the latency, in milliseconds.
func (s Stats) Quantile(p float64) float64 { return stat.Percentile(s.sorted, p) }

// Goal is a service level, in milliseconds; 0 is no goal.
type Goal struct{ TTFT, TPOT, E2EL float64 }

// Set reports whether the goal asks anything.
func (g Goal) Set() bool { return g != Goal{} }

// Goals are the presets of --slo, in milliseconds.
var Goals = map[string]Goal{
	"chat":       {500, 50, 10_000},
	"completion": {200, 30, 3_000},
	"rag":        {1_000, 80, 15_000},
	"agent":      {2_000, 100, 30_000},
	"batch":      {5_000, 100, 60_000},
}

// Met reports whether a request met the goal. Its latencies are those from when it
// was due if due is set.
func (g Goal) Met(s *Sample, due bool) bool {
	from := s.Sent
	if due {
		from = s.Due
	}
	within := func(d time.Duration, limit float64) bool { return limit == 0 || ms(d) <= limit }
	return s.OK() && within(s.First-from, g.TTFT) && within(s.TPOT(), g.TPOT) && within(s.Last-from, g.E2EL)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Metrics are the figures of a run, or of a window of it.
type Metrics struct {
	Duration                time.Duration
	Completed, Failed, Cut  int
	Wrong                   int
	InputTokens             int
	OutputTokens            int
	Good, GoodDue           int // requests that met the goal, from sent and from due
	PeakTokens              float64
	PeakConcurrency         int
	TTFT, TPOT, ITL, E2EL   Stats
	TTFTDue, E2ELDue        Stats
	ClientQueue             Stats // due to sent
	Content                 Stats // TTFT to the first event that carries anything
	EventsPerToken          float64
	RequestsPerSecond       float64
	OutputPerSecond         float64
	TokensPerSecond         float64
	GoodPerSecond           float64
	PercentilePoints        []float64
	events, tokensWithEvent int
}

// Measure turns samples into figures over a duration.
func Measure(samples []Sample, duration time.Duration, goal Goal, points []float64) Metrics {
	m := Metrics{Duration: duration, PercentilePoints: points}
	var ttft, tpot, itl, e2el, ttftDue, e2elDue, queue, content []float64
	for i := range samples {
		s := &samples[i]
		if s.Cut {
			m.Cut++
			continue
		}
		if s.Err != "" {
			m.Failed++
			continue
		}
		m.Completed++
		if s.Wrong {
			m.Wrong++
		}
		m.InputTokens += s.Prompt
		m.OutputTokens += s.Output
		m.events, m.tokensWithEvent = m.events+s.Events, m.tokensWithEvent+s.Output
		ttft, e2el = append(ttft, ms(s.TTFT())), append(e2el, ms(s.E2EL()))
		ttftDue, e2elDue = append(ttftDue, ms(s.First-s.Due)), append(e2elDue, ms(s.Last-s.Due))
		queue = append(queue, ms(s.Sent-s.Due))
		if s.Content > 0 {
			content = append(content, ms(s.Content-s.Sent))
		}
		if s.Output > 1 {
			tpot = append(tpot, ms(s.TPOT()))
		}
		for _, g := range s.Gaps {
			itl = append(itl, ms(g))
		}
		if goal.Met(s, false) {
			m.Good++
		}
		if goal.Met(s, true) {
			m.GoodDue++
		}
	}
	m.TTFT, m.TPOT, m.ITL, m.E2EL = statsOf(ttft, points), statsOf(tpot, points), statsOf(itl, points), statsOf(e2el, points)
	m.TTFTDue, m.E2ELDue, m.ClientQueue = statsOf(ttftDue, points), statsOf(e2elDue, points), statsOf(queue, points)
	m.Content = statsOf(content, points)
	m.PeakTokens, m.PeakConcurrency = peaks(samples)
	if m.tokensWithEvent > 0 {
		m.EventsPerToken = float64(m.events) / float64(m.tokensWithEvent)
	}
	if seconds := duration.Seconds(); seconds > 0 {
		m.RequestsPerSecond = float64(m.Completed) / seconds
		m.OutputPerSecond = float64(m.OutputTokens) / seconds
		m.TokensPerSecond = float64(m.InputTokens+m.OutputTokens) / seconds
		m.GoodPerSecond = float64(m.Good) / seconds
	}
	return m
}

// Steady returns the samples of the middle 80 % of sends, and how long that took:
// a run's beginning and end are neither full nor empty.
func Steady(samples []Sample) ([]Sample, time.Duration) {
	n := len(samples)
	if n < 10 {
		return nil, 0
	}
	window := samples[n/10 : n-n/10]
	return window, window[len(window)-1].Sent - window[0].Sent
}

// peaks returns the most events in one second, and the most requests that were under
// way in one, counted in whole seconds from the first request on.
func peaks(samples []Sample) (events float64, concurrency int) {
	first, last, found := time.Duration(0), time.Duration(0), false
	for i := range samples {
		if s := &samples[i]; s.OK() {
			if !found || s.Sent < first {
				first = s.Sent
			}
			last, found = max(last, s.Last), true
		}
	}
	if !found {
		return 0, 0
	}
	tokens, flying := make([]int, int((last-first)/time.Second)+2), make([]int, int((last-first)/time.Second)+2)
	for i := range samples {
		s := &samples[i]
		if !s.OK() || s.First < s.Sent {
			continue
		}
		at := s.First
		tokens[(at-first)/time.Second]++
		for _, g := range s.Gaps {
			at += g
			tokens[min(int((at-first)/time.Second), len(tokens)-1)]++
		}
		for second := (s.Sent - first) / time.Second; second <= (s.Last-first)/time.Second; second++ {
			flying[second]++
		}
	}
	for i := range tokens {
		events, concurrency = max(events, float64(tokens[i])), max(concurrency, flying[i])
	}
	return events, concurrency
}

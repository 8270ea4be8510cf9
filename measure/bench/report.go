package bench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"
)

//go:embed report.html
var reportText string

var reportPage = template.Must(template.New("report").Parse(reportText))

// Page is what a report shows.
type Page struct {
	Setup Setup
	Runs  []Measurement
	Sweep []SweepRun  // of --sweep
	Rate  float64     // the greatest rate that passed
	Facts [][2]string // how it was run
}

// WriteReport writes the page: one file, without a script, that asks for nothing.
func WriteReport(w io.Writer, p Page) error {
	last := p.Runs[len(p.Runs)-1]
	return reportPage.Execute(w, map[string]any{
		"Title":   p.Setup.Model,
		"Date":    p.Setup.Date.Format(time.RFC1123),
		"Verdict": p.sentence(),
		"Valid":   last.Verdict.Valid,
		"Reasons": last.Verdict.Reasons,
		"Notes":   last.Verdict.Notes,
		"Rows":    p.rows(),
		"Levels":  p.Sweep,
		"Plots":   p.plots(),
		"Facts":   p.Facts,
	})
}

// sentence is the result in one sentence.
func (p Page) sentence() string {
	m := p.Runs[len(p.Runs)-1].Metrics
	if len(p.Sweep) > 0 {
		if p.Rate == 0 {
			return "No rate passed."
		}
		why := "nothing failed above it"
		for _, l := range p.Sweep {
			if !l.Pass && l.Load.Rate > p.Rate {
				why = "above it: " + l.Why
			}
		}
		return fmt.Sprintf("%.3g requests/s meet the goal (%s); %s.", p.Rate, p.goal(), why)
	}
	return fmt.Sprintf("%.3g requests/s and %.0f output tokens/s; TTFT p50 %.0f ms, p95 %.0f; TPOT p50 %.1f ms; %d of %d requests failed.",
		m.RequestsPerSecond, m.OutputPerSecond, m.TTFT.Median, m.TTFT.Quantile(95), m.TPOT.Median, m.Failed, m.Failed+m.Completed)
}

func (p Page) goal() string {
	g := p.Setup.Goal
	var parts []string
	for _, part := range []struct {
		name string
		ms   float64
	}{{"TTFT", g.TTFT}, {"TPOT", g.TPOT}, {"E2EL", g.E2EL}} {
		if part.ms > 0 {
			parts = append(parts, fmt.Sprintf("%s %g ms", part.name, part.ms))
		}
	}
	if len(parts) == 0 {
		return "no goal but to keep up"
	}
	return strings.Join(parts, ", ")
}

// row is one line of the table of latencies.
type row struct {
	Name                     string
	Mean, P50, P95, P99, Max float64
}

func (p Page) rows() []row {
	m := p.Runs[len(p.Runs)-1].Metrics
	var all []row
	for _, f := range []struct {
		name string
		s    Stats
	}{{"TTFT", m.TTFT}, {"TPOT", m.TPOT}, {"ITL", m.ITL}, {"E2EL", m.E2EL}, {"TTFT from due", m.TTFTDue}, {"E2EL from due", m.E2ELDue}} {
		all = append(all, row{f.name, f.s.Mean, f.s.Median, f.s.Quantile(95), f.s.Quantile(99), f.s.Quantile(100)})
	}
	return all
}

func (p Page) plots() []template.HTML {
	samples := p.Runs[len(p.Runs)-1].Outcome.Samples
	var all []template.HTML
	for _, one := range append(p.sweepPlots(), distributions(p.Runs[len(p.Runs)-1].Metrics), timeline(samples), tokens(samples), waterfall(samples), byLength(samples)) {
		if text := one.svg(); text != "" {
			all = append(all, template.HTML(text)) // drawn by plot, which escapes every name
		}
	}
	return all
}

// sweepPlots show latency and throughput against the rate.
func (p Page) sweepPlots() []plot {
	if len(p.Sweep) == 0 {
		return nil
	}
	runs := slices.Clone(p.Sweep)
	slices.SortFunc(runs, func(a, b SweepRun) int {
		switch {
		case a.Load.Rate < b.Load.Rate:
			return -1
		case a.Load.Rate > b.Load.Rate:
			return 1
		}
		return 0
	})
	var rate, p50, p95, good, done []float64
	for _, l := range runs {
		rate = append(rate, l.Load.Rate)
		p50, p95 = append(p50, l.Metrics.TTFTDue.Median), append(p95, l.Metrics.TTFTDue.Quantile(95))
		seconds := max(l.Metrics.Duration.Seconds(), 1e-9)
		good, done = append(good, float64(l.Metrics.GoodDue)/seconds), append(done, l.Metrics.RequestsPerSecond)
	}
	first := plot{title: "Time to the first token from due, against the rate", xName: "requests/s asked", yName: "ms", logY: true,
		series: []series{{name: "p50", x: rate, y: p50, line: true}, {name: "p95", x: rate, y: p95, line: true}}}
	if g := p.Setup.Goal.TTFT; g > 0 {
		first.guides = []guideLine{{"goal", g}}
	}
	return []plot{first, {title: "Requests that ended, and that met the goal, against the rate", xName: "requests/s asked", yName: "requests/s", diagonal: true,
		series: []series{{name: "ended", x: rate, y: done, line: true}, {name: "met the goal", x: rate, y: good, line: true}}}}
}

// distributions shows what share of requests took at most so long.
func distributions(m Metrics) plot {
	p := plot{title: "Share of requests that took at most", xName: "ms", yName: "share", logX: true}
	for _, f := range []struct {
		name string
		s    Stats
	}{{"TTFT", m.TTFT}, {"TPOT", m.TPOT}, {"E2EL", m.E2EL}} {
		n := len(f.s.sorted)
		s := series{name: f.name, step: true}
		for i := 0; i < n; i += max(1, n/400) {
			s.x, s.y = append(s.x, f.s.sorted[i]), append(s.y, float64(i+1)/float64(n))
		}
		p.series = append(p.series, s)
	}
	return p
}

// timeline shows the requests in flight over time, failures beside them.
func timeline(samples []Sample) plot {
	type change struct {
		at time.Duration
		by float64
	}
	var all []change
	failed := series{name: "failed"}
	for i := range samples {
		s := &samples[i]
		all = append(all, change{s.Sent, 1}, change{s.End, -1})
		if s.Err != "" {
			failed.x, failed.y = append(failed.x, s.End.Seconds()), append(failed.y, 0)
		}
	}
	slices.SortFunc(all, func(a, b change) int { return int(a.at - b.at) })
	flying, now := series{name: "in flight", step: true}, 0.0
	for _, c := range all {
		now += c.by
		flying.x, flying.y = append(flying.x, c.at.Seconds()), append(flying.y, now)
	}
	p := plot{title: "Requests in flight", xName: "s", yName: "requests", series: []series{flying}}
	if len(failed.x) > 0 {
		p.series = append(p.series, failed)
	}
	return p
}

// tokens shows the events of each second.
func tokens(samples []Sample) plot {
	counts := map[int]float64{}
	last := 0
	for i := range samples {
		at := samples[i].First
		if samples[i].Events == 0 {
			continue
		}
		for n := 0; ; n++ {
			second := int(at / time.Second)
			counts[second]++
			last = max(last, second)
			if n == len(samples[i].Gaps) {
				break
			}
			at += samples[i].Gaps[n]
		}
	}
	s := series{name: "events", step: true}
	for second := range last {
		s.x, s.y = append(s.x, float64(second)), append(s.y, counts[second])
	}
	return plot{title: "Events of each whole second", xName: "s", yName: "events/s", series: []series{s}}
}

// waterfall shows when each of at most 500 requests waited and answered.
func waterfall(samples []Sample) plot {
	wait, answer := series{name: "sent"}, series{name: "first token"}
	end := series{name: "end"}
	for i := 0; i < min(len(samples), 500); i++ {
		s := &samples[i]
		if !s.OK() {
			continue
		}
		n := float64(i)
		wait.x, wait.y = append(wait.x, s.Sent.Seconds()), append(wait.y, n)
		answer.x, answer.y = append(answer.x, s.First.Seconds()), append(answer.y, n)
		end.x, end.y = append(end.x, s.Last.Seconds()), append(end.y, n)
	}
	return plot{title: "Each request: sent, first token, end", xName: "s", yName: "request", series: []series{wait, answer, end}}
}

// byLength shows the first token's time against the prompt's length, by worker.
func byLength(samples []Sample) plot {
	p := plot{title: "Time to the first token against the prompt's length", xName: "prompt tokens", yName: "ms"}
	index := map[string]int{}
	for i := range samples {
		s := &samples[i]
		if !s.OK() {
			continue
		}
		at, ok := index[s.Worker]
		if !ok {
			at = len(p.series)
			index[s.Worker] = at
			name := s.Worker
			if name == "" {
				name = "service"
			}
			p.series = append(p.series, series{name: name})
		}
		p.series[at].x, p.series[at].y = append(p.series[at].x, float64(s.Prompt)), append(p.series[at].y, ms(s.TTFT()))
	}
	return p
}

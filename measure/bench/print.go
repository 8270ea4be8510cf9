package bench

import (
	"fmt"
	"io"
	"math"
	"strings"

	"roundhouse/measure/stat"
)

// Print writes a run's figures as vLLM prints them, and then the verdict.
func Print(w io.Writer, s Setup, l Measurement) {
	m := l.Metrics
	title := func(c byte, text string) {
		text = " " + text + " "
		left := (50 - len(text)) / 2
		fmt.Fprintf(w, "%s%s%s\n", strings.Repeat(string(c), left), text, strings.Repeat(string(c), 50-left-len(text)))
	}
	whole := func(name string, n int) { fmt.Fprintf(w, "%-40s %-10d\n", name, n) }
	part := func(name string, x float64) { fmt.Fprintf(w, "%-40s %-10.2f\n", name, x) }

	title('=', "Serving Benchmark Result")
	whole("Successful requests:", m.Completed)
	whole("Failed requests:", m.Failed)
	if m.Cut > 0 {
		whole("Incomplete requests:", m.Cut)
	}
	if s.Concurrency > 0 {
		whole("Maximum request concurrency:", s.Concurrency)
	}
	if !math.IsInf(s.Load.Rate, 1) {
		part("Request rate configured (RPS):", s.Load.Rate)
	}
	part("Benchmark duration (s):", m.Duration.Seconds())
	whole("Total input tokens:", m.InputTokens)
	if s.Backend != Embeddings {
		whole("Total generated tokens:", m.OutputTokens)
	}
	part("Request throughput (req/s):", m.RequestsPerSecond)
	if s.Goal.Set() {
		part("Request goodput (req/s):", m.GoodPerSecond)
	}
	if s.Backend != Embeddings {
		part("Output token throughput (tok/s):", m.OutputPerSecond)
		part("Peak output token throughput (tok/s):", m.PeakTokens)
		part("Peak concurrent requests:", float64(m.PeakConcurrency))
	}
	part("Total token throughput (tok/s):", m.TokensPerSecond)
	for _, name := range s.Metrics {
		title('-', headings[name])
		printStats(part, strings.ToUpper(name), m.named(name), m.PercentilePoints)
	}
	title('-', "From the due time")
	printStats(part, "TTFT", m.TTFTDue, m.PercentilePoints)
	printStats(part, "E2EL", m.E2ELDue, m.PercentilePoints)
	fmt.Fprintln(w, strings.Repeat("=", 50))
	PrintVerdict(w, l.Verdict)
}

var headings = map[string]string{
	"ttft": "Time to First Token", "tpot": "Time per Output Token (excl. 1st token)",
	"itl": "Inter-token Latency", "e2el": "End-to-end Latency",
}

func printStats(part func(string, float64), name string, s Stats, points []float64) {
	part("Mean "+name+" (ms):", s.Mean)
	part("Median "+name+" (ms):", s.Median)
	for i, p := range points {
		part(fmt.Sprintf("P%g %s (ms):", p, name), s.Percentiles[i])
	}
}

// PrintVerdict says in words if a run's figures can be believed.
func PrintVerdict(w io.Writer, v Verdict) {
	if v.Valid {
		fmt.Fprintln(w, "valid: the schedule was kept and the client was not the limit")
	}
	for _, r := range v.Reasons {
		fmt.Fprintln(w, "NOT VALID:", r)
	}
	for _, n := range v.Notes {
		fmt.Fprintln(w, "note:", n)
	}
}

// PrintRuns writes the mean over several runs of each figure, with its 95 % interval
// by Student's t.
func PrintRuns(w io.Writer, runs []Measurement) {
	if len(runs) < 2 {
		return
	}
	fmt.Fprintf(w, "over %d runs, mean and 95 %% interval:\n", len(runs))
	for _, f := range figures {
		var x []float64
		for i := range runs {
			x = append(x, f.of(&runs[i].Metrics))
		}
		if in, ok := stat.MeanInterval(x); ok {
			fmt.Fprintf(w, "  %-22s %10.2f   %.2f to %.2f\n", f.name, stat.Mean(x), in.Low, in.High)
		}
	}
}

// figure is one number of a run that runs are compared by.
type figure struct {
	name string
	of   func(*Metrics) float64
}

var figures = []figure{
	{"requests/s", func(m *Metrics) float64 { return m.RequestsPerSecond }},
	{"output tokens/s", func(m *Metrics) float64 { return m.OutputPerSecond }},
	{"TTFT p50 ms", func(m *Metrics) float64 { return m.TTFT.Median }},
	{"TTFT p99 ms", func(m *Metrics) float64 { return m.TTFT.Quantile(99) }},
	{"TPOT p50 ms", func(m *Metrics) float64 { return m.TPOT.Median }},
	{"E2EL p50 ms", func(m *Metrics) float64 { return m.E2EL.Median }},
	{"E2EL p99 ms", func(m *Metrics) float64 { return m.E2EL.Quantile(99) }},
}

package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"roundhouse/measure/bench"
)

// sweep finds the greatest rate that the service bears.
func (b *benchmark) sweep(ctx context.Context) ([]bench.SweepRun, float64, error) {
	serial, err := b.serial(ctx)
	if err != nil {
		return nil, 0, err
	}
	fmt.Fprintf(b.out, "one request after the other: %.3g requests/s\n", serial)
	o := bench.SweepOptions{Goal: b.goal, Attainment: b.flags.target, MinRequests: b.flags.sweepRequests, MinTime: b.flags.sweepTime, Precision: 0.05, MaxRuns: 24}
	var failed error
	n := uint64(0)
	runs, rate := bench.Sweep(ctx, serial, o, func(rate float64, requests int) bench.Measurement {
		load := b.setup.Load
		load.Rate = rate
		n++
		l, err := b.measure(ctx, load, requests, b.flags.seed+n*1_000_003) // other prompts at each rate: no cache helps
		if err != nil {
			failed = err
			l.Verdict = bench.Verdict{Reasons: []string{err.Error()}}
		}
		b.tellRun(rate, l)
		return l
	})
	if failed != nil {
		return nil, 0, failed
	}
	if len(runs) == 0 {
		return nil, 0, fmt.Errorf("bench: stopped before the first run had ended")
	}
	b.tellSweep(runs, rate)
	return runs, rate, nil
}

// serial is the rate of one request after the other.
func (b *benchmark) serial(ctx context.Context) (float64, error) {
	was := b.flags.concurrency
	b.flags.concurrency = 1
	l, err := b.measure(ctx, bench.Load{Rate: math.Inf(1), Burstiness: 1}, 8, b.flags.seed)
	b.flags.concurrency = was
	switch {
	case err != nil:
		return 0, err
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case l.Metrics.Completed == 0:
		return 0, fmt.Errorf("bench: %s", l.Verdict.Reasons[0])
	}
	return l.Metrics.RequestsPerSecond, nil
}

func (b *benchmark) tellRun(rate float64, l bench.Measurement) {
	m := l.Metrics
	fmt.Fprintf(b.out, "%8.3g/s: %d ended, %d failed, %.1f %% within the goal, TTFT p50 %.0f ms, p95 %.0f from due\n",
		rate, m.Completed, m.Failed, 100*float64(m.GoodDue)/float64(max(1, m.Completed+m.Failed)), m.TTFTDue.Median, m.TTFTDue.Quantile(95))
}

func (b *benchmark) tellSweep(runs []bench.SweepRun, rate float64) {
	for _, l := range runs {
		if !l.Pass {
			fmt.Fprintf(b.out, "%8.3g/s does not pass: %s\n", l.Load.Rate, l.Why)
		}
	}
	if rate == 0 {
		fmt.Fprintln(b.out, "no rate passed")
		return
	}
	fmt.Fprintf(b.out, "the service bears %.3g requests/s\n", rate)
}

// sweepResult is the sweep in the result file.
func sweepResult(runs []bench.SweepRun, rate float64) map[string]any {
	var all []map[string]any
	for _, l := range runs {
		all = append(all, map[string]any{"rate": l.Load.Rate, "completed": l.Metrics.Completed, "failed": l.Metrics.Failed, "good": l.Good,
			"good_at_least": l.Bound, "saturated": l.Saturated, "pass": l.Pass, "why": l.Why, "p95_ttft_due_ms": l.Metrics.TTFTDue.Quantile(95)})
	}
	return map[string]any{"rate": rate, "levels": all}
}

// progress returns what tells how far a run is: one line that is written over on a
// terminal, a line each ten seconds elsewhere.
func (b *benchmark) progress(load bench.Load) func(bench.Progress) {
	if b.flags.quiet {
		return nil
	}
	end, next := "\r", time.Duration(0)
	if !isTerminal(b.err) {
		end, next = "\n", 10*time.Second
	}
	return func(p bench.Progress) {
		if end == "\n" && p.Elapsed < next {
			return
		}
		next = p.Elapsed + 10*time.Second
		seconds := max(p.Elapsed.Seconds(), 1e-3)
		left := ""
		if p.Done > 0 && p.Total > p.Done {
			left = fmt.Sprintf(", about %s left", (time.Duration(seconds/float64(p.Done)*float64(p.Total-p.Done)) * time.Second).Round(time.Second))
		}
		fmt.Fprintf(b.err, "%d of %d done, %d in flight, %d failed, %.1f/s, %.0f tok/s, lag %.0f ms%s    %s",
			p.Done, p.Total, p.Flying, p.Failed, float64(p.Done)/seconds, float64(p.Tokens)/seconds, float64(p.Lag)/1e6, left, end)
	}
}

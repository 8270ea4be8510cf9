package main

import (
	"fmt"
	"io"
	"strings"

	"roundhouse/measure/stat"
)

// column is one figure as a table shows it.
type column struct {
	title  string
	unit   string
	digits int
	more   bool // is better
	of     func(*figures) float64
}

var columns = []column{
	{"First tokens in time, %", "points", 1, true, func(f *figures) float64 { return 100 * f.Share }},
	{"Median of the time to the first token, seconds", "s", 2, false, func(f *figures) float64 { return f.P50 }},
	{"99th percentile of it", "s", 2, false, func(f *figures) float64 { return f.P99 }},
}

// report prints tables as Markdown, and what was lost.
func report(w io.Writer, all []*result) {
	var real, simulated []*result
	for _, r := range all {
		if r.simulated {
			simulated = append(simulated, r)
		} else {
			real = append(real, r)
		}
	}
	for _, kind := range []struct {
		name string
		list []*result
	}{{"in real time", real}, {"in simulated time", simulated}} {
		if len(kind.list) == 0 {
			continue
		}
		for i := range columns {
			table(w, kind.name, &columns[i], kind.list)
		}
		losses(w, kind.list)
	}
	if len(real) > 0 && len(simulated) > 0 {
		agreement(w, real, simulated)
	}
}

// table prints one figure of all, with half the 95 % interval of the mean; bold is what
// is not told from the best.
func table(w io.Writer, kind string, c *column, all []*result) {
	fmt.Fprintf(w, "\n**%s, %s**\n\n| cell | %s |\n|---|%s\n", c.title, kind, strings.Join(all[0].order, " | "), strings.Repeat("---|", len(all[0].order)))
	for _, r := range all {
		best := r.best(c.of, c.more)
		fmt.Fprintf(w, "| %s |", r.cell)
		for _, name := range r.order {
			x := r.of(name, c.of)
			text := fmt.Sprintf("%.*f ± %.*f", c.digits, stat.Mean(x), c.digits, half(x))
			if _, sure := r.differ(name, best, c.of); !sure {
				text = "**" + text + "**"
			}
			fmt.Fprintf(w, " %s |", text)
		}
		fmt.Fprintln(w)
	}
}

// losses names what is better than the first router, by more than chance.
func losses(w io.Writer, all []*result) {
	fmt.Fprintf(w, "\nBetter than %s, seed by seed and by more than chance:\n\n", all[0].order[0])
	for _, r := range all {
		for i := range columns {
			c := &columns[i]
			for _, name := range r.order[1:] {
				by, sure := r.differ(name, r.order[0], c.of)
				if sure && by > 0 == c.more {
					fmt.Fprintf(w, "- %s: %s, %s: %.*f %s\n", r.cell, name, strings.ToLower(c.title), c.digits, by, c.unit)
				}
			}
		}
	}
	lag, late, failed := 0.0, 0.0, 0
	for _, r := range all {
		client, engines := r.lags()
		lag, late = max(lag, client), max(late, engines)
		for _, list := range r.figures {
			for i := range list {
				failed += list[i].Failed
			}
		}
	}
	fmt.Fprintf(w, "\nThe client was at most %.0f ms late (p99 of a run), the engines %.0f (mean of a run); %d requests failed.\n", 1000*lag, 1000*late, failed)
}

// agreement prints how far simulated time orders the routers of each cell as real time
// does.
func agreement(w io.Writer, real, simulated []*result) {
	fmt.Fprintln(w, "\nKendall's tau between real and simulated time, by the mean time to the first token:")
	fmt.Fprintln(w)
	sum := 0.0
	for i, r := range real {
		mean := func(f *figures) float64 { return f.Mean }
		same := map[string][]float64{} // routers that are one policy in simulated time
		of := map[string]float64{}
		for _, p := range routers() {
			if other := simulated[i].of(p.name, mean); len(other) > 0 {
				same[p.policy], of[p.policy] = append(same[p.policy], r.of(p.name, mean)...), stat.Mean(other)
			}
		}
		var a, b []float64
		for policy, times := range same {
			a, b = append(a, stat.Mean(times)), append(b, of[policy])
		}
		tau := kendall(a, b)
		sum += tau
		fmt.Fprintf(w, "- %s: %.2f\n", r.cell, tau)
	}
	fmt.Fprintf(w, "\nTheir mean: %.2f.\n", sum/float64(len(real)))
}

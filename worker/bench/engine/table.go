package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// table is what the bench prints: one line a figure, ours, theirs, their ratio,
// and the goal.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer) *table {
	t := &table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	fmt.Fprintln(t.w, "figure\tours\tllama.cpp\tratio\tgoal\tbeside")
	return t
}

// line is one figure. A ratio of 0 is unknown.
type line struct {
	name         string
	unit         string
	ours, theirs float64
	ratio        float64
	goal         string
	beside       string
}

func (t *table) add(l line) {
	number := func(v float64) string {
		if v == 0 {
			return "-"
		}
		if v < 10 {
			return fmt.Sprintf("%.2f %s", v, l.unit)
		}
		return fmt.Sprintf("%.0f %s", v, l.unit)
	}
	ratio := "-"
	if l.ratio > 0 {
		ratio = fmt.Sprintf("%.2f", l.ratio)
	}
	fmt.Fprintf(t.w, "%s\t%s\t%s\t%s\t%s\t%s\n", l.name, number(l.ours), number(l.theirs), ratio, l.goal, l.beside)
}

func (t *table) flush() error { return t.w.Flush() }

// over is a/b, 0 where b is unknown.
func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// median of some figures, 0 of none.
func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// figure is one row of the table: what was measured of each proxy.
type figure struct {
	name   string
	unit   string
	goals  []goal
	rounds []map[string]float64
}

// goal is what the door is held to: a bound on its figure, or on its ratio to
// another proxy's.
type goal struct {
	against string // "": the figure itself
	least   bool   // else at most
	bound   float64
}

func atMost(against string, bound float64) goal  { return goal{against, false, bound} }
func atLeast(against string, bound float64) goal { return goal{against, true, bound} }

// value is the median over the rounds.
func (f *figure) value(name string) (float64, bool) {
	var all []float64
	for _, r := range f.rounds {
		if v, ok := r[name]; ok {
			all = append(all, v)
		}
	}
	return median(all), len(all) > 0
}

// ratio is the door's figure to another's. Rates are compared round by round,
// so that a machine that changes its pace changes no ratio; where a round's
// figure may be zero the medians are.
func (f *figure) ratio(to string) (float64, bool) {
	all := f.ratios(to)
	if len(all) < len(f.rounds) {
		d, _ := f.value("door")
		v, _ := f.value(to)
		return d / v, v > 0
	}
	return median(all), len(all) > 0
}

// ratios are the door's figures to another's, of the rounds in which neither
// is zero.
func (f *figure) ratios(to string) (all []float64) {
	for _, r := range f.rounds {
		if d, v := r["door"], r[to]; d > 0 && v > 0 {
			all = append(all, d/v)
		}
	}
	return all
}

// compare says the door's ratio to another, and from where to where it went
// over the rounds.
func (f *figure) compare(to string) string {
	v, ok := f.ratio(to)
	if !ok {
		return "-"
	}
	if all := f.ratios(to); len(all) > 1 {
		return fmt.Sprintf("%.2f (%.2f to %.2f)", v, slices.Min(all), slices.Max(all))
	}
	return fmt.Sprintf("%.2f", v)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// judge says the goals of a figure, and which of them do not hold.
func (f *figure) judge() string {
	var said []string
	for _, g := range f.goals {
		v, ok := f.value("door")
		sign, unit := "≤", " "+f.unit
		if g.least {
			sign = "≥"
		}
		if g.against != "" {
			v, ok = f.ratio(g.against)
			unit = " × " + g.against
		}
		verdict := "holds"
		if held := g.least && v >= g.bound || !g.least && v <= g.bound; !ok {
			verdict = "not measured"
		} else if !held {
			verdict = "MISSED"
		}
		said = append(said, fmt.Sprintf("%s %g%s: %s", sign, g.bound, unit, verdict))
	}
	return strings.Join(said, "; ")
}

// print writes the table, with the door's ratio to each of the others, its
// spread over the rounds, and what became of the goals.
func print(rows []figure, names []string) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "figure\tunit\t")
	for _, n := range names {
		fmt.Fprintf(w, "%s\t", n)
	}
	for _, n := range names[1:] {
		fmt.Fprintf(w, "door / %s\t", n)
	}
	fmt.Fprintln(w, "goal")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t", r.name, r.unit)
		for _, n := range names {
			if v, ok := r.value(n); ok {
				fmt.Fprintf(w, "%.4g\t", v)
			} else {
				fmt.Fprintf(w, "-\t")
			}
		}
		for _, n := range names[1:] {
			fmt.Fprintf(w, "%s\t", r.compare(n))
		}
		fmt.Fprintln(w, r.judge())
	}
	w.Flush()
}

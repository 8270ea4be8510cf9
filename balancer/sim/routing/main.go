// Command routing compares the door's policies with those that others
// publish, on the same simulated fleets and traffic. `make bench-routing` runs
// it; files named on the command line are recorded traffic.
package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"

	"roundhouse/balancer/sim"
)

func main() {
	short := flag.Bool("short", false, "a third of the requests, of one seed")
	seed := flag.Uint64("seed", 101, "the first of the traffic's seeds; 1 to 5 are those that the policies were tuned on")
	seeds := flag.Int("seeds", 10, "how many seeds, one after the other")
	load := flag.Float64("load", 0.6, "the share of what the fleet computes to which recorded traffic is sped up")
	fleet := flag.String("fleet", "fitted", "fitted: workers as our own was measured; accelerator: a mid-size model on one")
	only := flag.String("policy", "", "only the policies whose name holds this")
	flag.Parse()
	scale, limit := 1.0, 6000
	if *short {
		scale, limit, *seeds = 0.33, 2000, 1
	}
	speed, ok := map[string]sim.Speed{"fitted": sim.Fitted, "accelerator": sim.Accelerator}[*fleet]
	if !ok {
		fmt.Fprintln(os.Stderr, "routing: -fleet is fitted or accelerator")
		os.Exit(2)
	}
	var rows []*row
	for s := range *seeds {
		all := sim.Scenarios(speed, *seed+uint64(s), scale)
		for i := range all {
			if s == 0 {
				rows = append(rows, &row{name: all[i].Name})
			}
			rows[i].play(&all[i], *seed+uint64(s), *only)
		}
	}
	for _, path := range flag.Args() {
		r, err := recorded(path, speed, limit, *load, *seed, (*seeds+1)/2, *only)
		if err != nil {
			fmt.Fprintln(os.Stderr, "routing:", err)
			os.Exit(1)
		}
		rows = append(rows, r)
	}
	fmt.Printf("Fleet %s, seeds %d to %d, means over them.\n", *fleet, *seed, *seed+uint64(*seeds)-1)
	table("99th percentile of the time to first token, seconds", rows, 2, false, func(o *sim.Outcome) float64 { return o.P99 })
	table("median of the time to first token, seconds", rows, 2, false, func(o *sim.Outcome) float64 { return o.P50 })
	table("answers whose first token came in time, %", rows, 1, true, func(o *sim.Outcome) float64 { return 100 * o.Goodput })
	losses(rows)
}

// recorded plays a trace, sped up until it loads the fleet, several times: each
// time every arrival is put off by up to a tenth of the mean gap, which tells
// what is a policy's doing from what is chance.
func recorded(path string, speed sim.Speed, limit int, load float64, seed uint64, plays int, only string) (*row, error) {
	fleet := sim.SameSpeed(8, speed)
	s, err := sim.Trace(path, fleet, 1, limit)
	if err != nil {
		return nil, err
	}
	by := s.Fit(load)
	if s, err = sim.Trace(path, fleet, by, limit); err != nil {
		return nil, err
	}
	r := &row{name: fmt.Sprintf("%s, %.2g times as fast", strings.TrimSuffix(strings.TrimSuffix(s.Name, ".csv"), ".jsonl"), by)}
	gap := s.Jobs[len(s.Jobs)-1].At / float64(len(s.Jobs))
	for k := range plays {
		shaken := s
		shaken.Jobs = append([]sim.Job(nil), s.Jobs...)
		rng := rand.New(rand.NewPCG(seed+uint64(k), 3))
		for i := range shaken.Jobs {
			shaken.Jobs[i].At += rng.Float64() * gap / 10
		}
		r.play(&shaken, seed+uint64(k), only)
	}
	return r, nil
}

// row is one traffic and what each policy made of it, summed over seeds, and what
// each made of it with each seed.
type row struct {
	name     string
	runs     int
	outcomes []sim.Outcome
	each     [][]sim.Outcome // by policy
}

func (r *row) play(s *sim.Scenario, seed uint64, only string) {
	r.runs++
	n := 0
	for _, make := range sim.Policies() {
		p := make()
		if !strings.Contains(p.Name(), only) {
			continue
		}
		o := sim.Run(s, p, seed)
		if n == len(r.outcomes) {
			r.outcomes = append(r.outcomes, sim.Outcome{Policy: o.Policy})
			r.each = append(r.each, nil)
		}
		r.each[n] = append(r.each[n], o)
		sum := &r.outcomes[n]
		sum.P50, sum.P99, sum.Goodput = sum.P50+o.P50, sum.P99+o.P99, sum.Goodput+o.Goodput
		n++
	}
}

// table prints one figure of all as Markdown, the best of each row in bold.
func table(title string, rows []*row, digits int, more bool, figure func(*sim.Outcome) float64) {
	fmt.Printf("\n**%s**\n\n| traffic |", title)
	for i := range rows[0].outcomes {
		fmt.Printf(" %s |", rows[0].outcomes[i].Policy)
	}
	fmt.Printf("\n|---|%s\n", strings.Repeat("---|", len(rows[0].outcomes)))
	for _, r := range rows {
		texts := make([]string, len(r.outcomes))
		best := ""
		top := 0.0
		for i := range r.outcomes {
			v := figure(&r.outcomes[i]) / float64(r.runs)
			texts[i] = fmt.Sprintf("%.*f", digits, v)
			if best == "" || more && v > top || !more && v < top {
				best, top = texts[i], v
			}
		}
		fmt.Printf("| %s |", r.name)
		for _, text := range texts {
			if text == best {
				text = "**" + text + "**"
			}
			fmt.Printf(" %s |", text)
		}
		fmt.Println()
	}
}

// losses names every traffic in which another policy is better than the first,
// and how far the difference is from chance.
func losses(rows []*row) {
	fmt.Printf("\nWhere another is better than %s; behind ± the standard error of the difference over the seeds:\n\n", rows[0].outcomes[0].Policy)
	for _, r := range rows {
		for i := 1; i < len(r.outcomes); i++ {
			name := r.outcomes[i].Policy
			if us, by, off := r.compare(i, func(o *sim.Outcome) float64 { return o.P99 }); by < 0 {
				fmt.Printf("- %s: p99 of %s %.3f s, ours %.3f s: %.3f%s\n", r.name, name, us+by, us, by, off)
			}
			if us, by, off := r.compare(i, func(o *sim.Outcome) float64 { return 100 * o.Goodput }); by > 0.05 {
				fmt.Printf("- %s: in time by %s %.1f %%, ours %.1f %%: +%.2f%s\n", r.name, name, us+by, us, by, off)
			}
		}
	}
}

// compare returns the mean of a figure under the first policy, by how much it is
// more under another, and the standard error of that, seed by seed.
func (r *row) compare(other int, figure func(*sim.Outcome) float64) (us, by float64, off string) {
	n, squares := float64(r.runs), 0.0
	for s := range r.runs {
		us += figure(&r.each[0][s]) / n
		by += (figure(&r.each[other][s]) - figure(&r.each[0][s])) / n
	}
	if r.runs == 1 {
		return us, by, ""
	}
	for s := range r.runs {
		d := figure(&r.each[other][s]) - figure(&r.each[0][s]) - by
		squares += d * d
	}
	return us, by, fmt.Sprintf(" ± %.3f", math.Sqrt(squares/(n-1)/n))
}

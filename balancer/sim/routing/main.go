// Command routing compares the door's policies with those that others
// publish, on the same simulated fleets and traffic. `make bench-routing` runs
// it; files named on the command line are recorded traffic.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"roundhouse/balancer/sim"
)

func main() {
	short := flag.Bool("short", false, "a third of the requests")
	seed := flag.Uint64("seed", 1, "of the traffic")
	speedup := flag.Float64("speedup", 0, "how much faster a trace is played; 0: to load the fleet")
	only := flag.String("policy", "", "only the policies whose name holds this")
	flag.Parse()
	scale, limit := 1.0, 6000
	if *short {
		scale, limit = 0.33, 2000
	}
	all := sim.Scenarios(*seed, scale)
	for _, path := range flag.Args() {
		s, err := sim.Trace(path, 1, limit)
		if err != nil {
			fmt.Fprintln(os.Stderr, "routing:", err)
			os.Exit(1)
		}
		by := *speedup
		if by == 0 {
			by = s.Fit(0.6)
		}
		if s, err = sim.Trace(path, by, limit); err != nil {
			fmt.Fprintln(os.Stderr, "routing:", err)
			os.Exit(1)
		}
		s.Name += fmt.Sprintf(" at %.1f x", by)
		all = append(all, s)
	}
	fmt.Printf("seed %d\n\n", *seed)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for i := range all {
		fmt.Fprintf(w, "%s\tTTFT p50\tTTFT p99\tin time\n", all[i].Name)
		for _, make := range sim.Policies() {
			p := make()
			if !strings.Contains(p.Name(), *only) {
				continue
			}
			o := sim.Run(&all[i], p, *seed)
			fmt.Fprintf(w, "  %s\t%.3f s\t%.3f s\t%.1f %%\n", o.Policy, o.P50, o.P99, 100*o.Goodput)
		}
		fmt.Fprintln(w, "\t\t\t")
	}
	w.Flush()
}

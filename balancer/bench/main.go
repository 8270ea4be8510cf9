package main

import (
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
	"time"
)

func main() {
	var o options
	flag.BoolVar(&o.short, "short", false, "take less than a minute")
	flag.StringVar(&o.door, "door", "bin/roundhouse", "the door's program")
	flag.StringVar(&o.configs, "configs", "balancer/bench", "where nginx.conf and haproxy.cfg are")
	flag.StringVar(&o.only, "only", "", "run only this figure: plain, stream, ttfb, idle, long, hundred")
	upstream := flag.String("upstream", "", "be an upstream on this address (used by the program itself)")
	target := flag.String("hammer", "", "only load this address, for a profile of what stands there")
	kind := flag.String("kind", "plain", "with -hammer: plain or stream")
	flag.Parse()
	if *upstream != "" {
		exit(serveUpstream(*upstream))
	}
	if *target != "" {
		exit(hammerOnly(*target, *kind == "stream"))
	}
	exit(run(o))
}

// hammerOnly loads one address for a while.
func hammerOnly(addr string, streams bool) error {
	r, err := hammer(addr, 64, request(streams, "100,0s", 1000), 4*time.Second)
	if r != nil {
		fmt.Printf("%.0f requests/s, p50 %.6f s, p99 %.6f s\n", float64(r.requests)/r.seconds, r.at(.5), r.at(.99))
	}
	return err
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

type options struct {
	short         bool
	door, configs string
	only          string
}

// figure is one row of the table: what was measured of each proxy.
type figure struct {
	name   string
	unit   string
	better int // +1: more is better, -1: less is
	values map[string]float64
}

func run(o options) error {
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer b.stop()
	var rows []figure
	for _, step := range []struct {
		name string
		run  func() ([]figure, error)
	}{
		{"plain", b.plain}, {"stream", b.streams}, {"ttfb", b.firstByte}, {"long", b.longPrompts}, {"idle", b.idleStreams}, {"hundred", b.hundredWorkers},
	} {
		if o.only != "" && o.only != step.name {
			continue
		}
		got, err := step.run()
		if err != nil {
			print(rows, b.names())
			return fmt.Errorf("%s: %w", step.name, err)
		}
		rows = append(rows, got...)
	}
	print(rows, b.names())
	return nil
}

// print writes the table, with the door's ratio to each of the others.
func print(rows []figure, names []string) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "figure\tunit\t")
	for _, n := range names {
		fmt.Fprintf(w, "%s\t", n)
	}
	for _, n := range names[1:] {
		fmt.Fprintf(w, "door / %s\t", n)
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t", r.name, r.unit)
		for _, n := range names {
			if v, ok := r.values[n]; ok {
				fmt.Fprintf(w, "%.4g\t", v)
			} else {
				fmt.Fprintf(w, "-\t")
			}
		}
		for _, n := range names[1:] {
			if v, ok := r.values[n]; ok && v > 0 {
				fmt.Fprintf(w, "%.2f\t", r.values[names[0]]/v)
			} else {
				fmt.Fprintf(w, "-\t")
			}
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Println("\nRates: more is better. Seconds, cores and bytes: less is better.")
}

// span picks a measuring time.
func (o options) span(short, long time.Duration) time.Duration {
	if o.short {
		return short
	}
	return long
}

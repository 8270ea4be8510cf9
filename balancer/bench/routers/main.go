package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

// options are the command line's.
type options struct {
	door      string
	peers     string // a Python environment with the other routers
	seconds   float64
	seeds     int
	first     uint64
	parallel  int
	all       bool
	short     bool
	cells     string
	only      string
	simulated bool
	agree     bool
	traces    []string
}

func main() {
	var o options
	flag.StringVar(&o.door, "door", "bin/roundhouse", "the door's program")
	flag.StringVar(&o.peers, "peers", "build/peers", "a Python environment with vllm-router and sglang-router")
	flag.Float64Var(&o.seconds, "seconds", 24, "how long a cell takes; its first quarter warms the fleet up and is in no figure")
	flag.IntVar(&o.seeds, "seeds", 3, "how many seeds, one after the other")
	flag.Uint64Var(&o.first, "seed", 101, "the first of them; 1 to 20 are those that the policies were tuned on")
	flag.IntVar(&o.parallel, "parallel", 4, "how many routers run side by side")
	flag.BoolVar(&o.all, "all", false, "every router, traffic, bound, share and age of metrics: days")
	flag.BoolVar(&o.short, "short", false, "a few cells of one seed, about two minutes")
	flag.StringVar(&o.cells, "cells", "", "only the cells whose name holds one of these, by commas; one that is named in full (long-short/kv/0.95/1s) is run also if it is in no list")
	flag.StringVar(&o.only, "routers", "", "only the routers whose name holds one of these, by commas")
	flag.BoolVar(&o.simulated, "simulated", false, "in simulated time, where routers are their published policies")
	flag.BoolVar(&o.agree, "agree", false, "in real time and in simulated time, and how far the orders agree")
	engines := flag.String("engines", "", "serve the engines that this JSON tells (used by the program itself)")
	flag.Parse()
	o.traces = flag.Args()
	if *engines != "" {
		exit(serveEngines(*engines))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(run(ctx, o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "routers:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// named reports whether a name is among those asked for: it holds one of the parts
// of a list, or the list is empty.
func named(name, list string) bool {
	for part := range strings.SplitSeq(list, ",") {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

func run(ctx context.Context, o options) error {
	if o.short {
		o.seeds, o.seconds = 1, min(o.seconds, 16)
	}
	var results []*result
	for _, c := range chosen(o) {
		for _, simulated := range []bool{true, false} {
			if simulated != o.simulated && !o.agree {
				continue
			}
			r := &result{cell: c, simulated: simulated, figures: map[string][]figures{}}
			for k := range o.seeds {
				if err := r.play(ctx, o, o.first+uint64(k), k); err != nil {
					return err
				}
			}
			results = append(results, r)
			r.progress(os.Stderr)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	report(os.Stdout, results)
	return nil
}

package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	var o options
	flag.BoolVar(&o.short, "short", false, "take about a minute and a half")
	flag.StringVar(&o.door, "door", "bin/roundhouse", "the door's program")
	flag.StringVar(&o.configs, "configs", "balancer/bench", "where nginx.conf and haproxy.cfg are")
	flag.StringVar(&o.only, "only", "", "run only this figure: idle, prompts, tls, plain, nethttp, stream, ttfb, long, hundred, choice; kill runs only when it is named")
	flag.IntVar(&o.rounds, "rounds", 0, "how many rounds to measure, where a figure takes rounds; 0: five, with -short two")
	engine := flag.String("engine", "", "be an engine on this address (used by the program itself)")
	own := flag.Bool("own", false, "with -engine: be a worker of ours")
	upstream := flag.String("upstream", "", "be an upstream on this address (used by the program itself)")
	standard := flag.Bool("nethttp", false, "with -upstream: by Go's net/http")
	target := flag.String("hammer", "", "only load this address, for a profile of what stands there")
	kind := flag.String("kind", "plain", "with -hammer: plain, stream, steady or long")
	flag.Parse()
	if *upstream != "" {
		if *standard {
			exit(serveStandard(*upstream))
		}
		exit(serveUpstream(*upstream))
	}
	if *engine != "" {
		exit(serveEngine(*engine, *own))
	}
	if *target != "" {
		exit(hammerOnly(*target, *kind))
	}
	exit(run(o))
}

// hammerOnly loads one address for a while.
func hammerOnly(addr, kind string) (err error) {
	const span = 4 * time.Second
	var r *result
	switch kind {
	case "steady":
		r, err = steady(addr, 200, request(false, "x", 1000), span)
	case "long":
		r, err = steady(addr, 100, request(false, "x", 400_000), span)
	default:
		r, err = hammer(addr, 64, request(kind == "stream", "100,0s", 1000), span)
	}
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
	rounds        int
}

func run(o options) error {
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer b.stop()
	if o.only == "kill" {
		rows, err := b.killing()
		print(rows, b.names())
		return err
	}
	var rows []figure
	for _, step := range []struct {
		name string
		run  func() ([]figure, error)
	}{
		// Open streams come first: what they take is known of a process that has done nothing yet.
		{"idle", b.idleStreams}, {"prompts", b.heldPrompts}, {"tls", b.encrypted}, {"plain", b.plain}, {"nethttp", b.behindStandard}, {"stream", b.streams}, {"ttfb", b.firstByte}, {"long", b.longPrompts}, {"hundred", b.hundredWorkers}, {"choice", choices},
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

// span picks a measuring time.
func (o options) span(short, long time.Duration) time.Duration {
	if o.short {
		return short
	}
	return long
}

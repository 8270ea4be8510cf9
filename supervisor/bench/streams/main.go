// Command streams keeps streams of checkable answers going through a door while
// its workers are rotated, and says what became of them: lost, refused, mixed, and
// how much later first tokens came than in peace. Workers are processes, or
// containers on the Docker engine that answers.
//
//	go run ./supervisor/bench/streams [-driver process|docker] [-rotations 20] [-short]
//	go run ./supervisor/bench/streams -parallel     one worker against two, in tokens per second
//
// The workers are this repository's own with its demonstration model, which counts
// right: every number of every answer is checked. Each step of a worker takes
// -pace, so that what is measured is the door and the rotation and not how many
// cores this machine has; three workers with room for 40 streams each carry 48
// streams at 60 % of what two of them can.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"roundhouse/test/counting"
)

// options are what is run.
type options struct {
	driver    string
	workers   int
	streams   int
	room      int // streams that a worker has room for
	rotations int
	steady    time.Duration
	pace      time.Duration
	within    time.Duration // no rotation is begun later
	surge     bool          // a further worker is started before any is taken out
}

func main() {
	o := options{}
	flag.StringVar(&o.driver, "driver", "process", "process or docker")
	flag.IntVar(&o.rotations, "rotations", 20, "how often every worker is rotated")
	flag.IntVar(&o.workers, "workers", 3, "")
	flag.IntVar(&o.streams, "streams", 48, "")
	flag.IntVar(&o.room, "room", 40, "streams that a worker has room for")
	flag.DurationVar(&o.steady, "steady", time.Minute, "how long first tokens are timed in peace, half of it before the rotations and half of it after")
	flag.DurationVar(&o.within, "within", 7*time.Minute, "no rotation is begun later than this, however many are left")
	flag.DurationVar(&o.pace, "pace", 50*time.Millisecond, "the least time of a worker's step")
	parallel := flag.Bool("parallel", false, "compare one worker with two")
	short := flag.Bool("short", false, "one rotation, a few seconds of peace")
	flag.Parse()
	if *short {
		o.rotations, o.steady = 1, 6*time.Second
	}
	var err error
	if *parallel {
		err = compare(context.Background(), o)
	} else {
		err = rotate(context.Background(), o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "streams:", err)
		os.Exit(1)
	}
}

// rotate runs the rotations and prints the table.
func rotate(ctx context.Context, o options) error {
	began := time.Now()
	r, err := measure(ctx, o)
	if err != nil {
		return err
	}
	fmt.Println("| workers | streams | rotations | answers | lost | refused | mixed | p99 TTFT in peace | in rotation | ratio |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	fmt.Println(r)
	fmt.Printf("\n%d first tokens in peace, %d in rotation; %v in all, %v a rotation\n", r.peaceful, r.turning, time.Since(began).Round(time.Second), r.took.Round(100*time.Millisecond))
	if r.rotations < o.rotations {
		fmt.Printf("only %d of %d rotations within %v: this machine is busy with something else\n", r.rotations, o.rotations, o.within)
	}
	fmt.Printf("goal: none lost, refused or mixed: %s\n", held(r.lost+r.refused+r.mixed == 0))
	fmt.Printf("goal: p99 TTFT in rotation at most %.1f times that in peace: %s\n\n", goal, held(r.ratio() <= goal))
	if n := r.lost + r.refused + r.mixed; n > 0 {
		return fmt.Errorf("%d answers were not what they should be; the first: %s", n, r.first)
	}
	return nil
}

// goal is how much later a first token may come in a rotation, at 60 % of what the
// workers without the one that turns can carry.
const goal = 1.2

func held(ok bool) string {
	if ok {
		return "holds"
	}
	return "DOES NOT HOLD"
}

// result is a row of the table.
type result struct {
	options
	answers, lost, refused, mixed int
	first                         string // the first fault
	peace, rotating               time.Duration
	peaceful, turning             int           // first tokens of which these are
	took                          time.Duration // by a rotation
}

// ratio is how much later first tokens came in rotation.
func (r result) ratio() float64 { return float64(r.rotating) / float64(max(1, r.peace)) }

// String writes it as a row.
func (r result) String() string {
	return fmt.Sprintf("| %d %s | %d | %d | %d | %d | %d | %d | %d ms | %d ms | %.2f |", r.workers, r.driver, r.streams, r.rotations, r.answers,
		r.lost, r.refused, r.mixed, r.peace.Milliseconds(), r.rotating.Milliseconds(), r.ratio())
}

// measure keeps the streams going, first in peace, then while all workers are
// rotated again and again.
func measure(ctx context.Context, o options) (result, error) {
	r := result{options: o}
	h, err := start(ctx, o)
	if err != nil {
		return r, err
	}
	defer h.stop()
	all, err := h.questions(ctx)
	if err != nil {
		return r, err
	}
	load := h.load(ctx, all, o.streams)
	time.Sleep(2 * time.Second) // until the streams are spread
	load.cut()
	time.Sleep(o.steady / 2)
	peace := load.cut()
	began := time.Now()
	for n := range o.rotations {
		if o.within > 0 && time.Since(began) > o.within {
			r.rotations = n
			break
		}
		if out, err := h.roundhouse("rotate", "chat"); err != nil {
			load.stop()
			return r, fmt.Errorf("rotation %d: %w\n%s", n+1, err, out)
		}
	}
	r.took = time.Since(began) / time.Duration(max(1, r.rotations))
	rotating := load.cut()
	time.Sleep(o.steady / 2)
	peace = append(peace, load.cut()...)
	load.stop()
	for _, s := range slices.Concat(peace, rotating, load.cut()) {
		r.count(s)
	}
	r.peace, r.rotating, r.peaceful, r.turning = p99(peace), p99(rotating), len(peace), len(rotating)
	return r, nil
}

func (r *result) count(s sample) {
	switch counting.FateOf(s.err) {
	case "":
		r.answers++
		return
	case counting.Refused:
		r.refused++
	case counting.Mixed:
		r.mixed++
	case counting.Lost:
		r.lost++
	}
	if r.first == "" {
		r.first = s.err.Error()
	}
}

// p99 is the time that 99 of 100 first tokens took at most.
func p99(samples []sample) time.Duration {
	var all []time.Duration
	for _, s := range samples {
		if s.err == nil {
			all = append(all, s.ttft)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}

// compare prints how many tokens per second one worker makes, and two: once with
// steps that take a set time, as on a device of their own, and once as fast as the
// cores that they share with the door and the clients allow.
func compare(ctx context.Context, o options) error {
	fmt.Println("| step | workers | streams | tokens per second | ratio |")
	fmt.Println("|---|---|---|---|---|")
	for _, pace := range []time.Duration{o.pace, 0} {
		one := 0.0
		for n := 1; n <= 2; n++ {
			o := o
			o.workers, o.pace, o.streams = n, pace, 16*n
			speed, err := throughput(ctx, o)
			if err != nil {
				return err
			}
			if n == 1 {
				one = speed
			}
			step := strings.TrimSuffix(pace.String(), "0s") + " at least"
			if pace == 0 {
				step = "as the cores allow"
			}
			fmt.Printf("| %s | %d | %d | %.0f | %.2f |\n", step, n, o.streams, speed, speed/one)
		}
	}
	return nil
}

// throughput is the tokens per second of o.workers under o.streams.
func throughput(ctx context.Context, o options) (float64, error) {
	h, err := start(ctx, o)
	if err != nil {
		return 0, err
	}
	defer h.stop()
	all, err := h.questions(ctx)
	if err != nil {
		return 0, err
	}
	load := h.load(ctx, all, o.streams)
	defer load.stop()
	time.Sleep(3 * time.Second)
	before, began := load.tokens.Load(), time.Now()
	time.Sleep(min(o.steady, 20*time.Second))
	return float64(load.tokens.Load()-before) / time.Since(began).Seconds(), nil
}

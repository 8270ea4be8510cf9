// Command fit measures a real worker and prints the constants of the simulator's
// engine that come nearest to it, with their error: at the points that they were
// fitted to, and on mixed traffic that they were not.
//
//	go run ./balancer/sim/fit [-short] [-worker bin/roundhouse-worker]
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"roundhouse/balancer/sim"
)

func main() {
	program := flag.String("worker", "bin/roundhouse-worker", "the worker's program")
	short := flag.Bool("short", false, "fewer points, each measured once")
	seed := flag.Uint64("seed", 1, "of the prompts and of the mixed traffic")
	flag.Parse()
	if err := run(*program, *short, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "fit:", err)
		os.Exit(1)
	}
}

// budget is the tokens of a step that the worker is started with.
const budget = 2048

func run(program string, short bool, seed uint64) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w, err := start(ctx, program)
	if err != nil {
		return err
	}
	defer w.stop()
	m := &meter{w: w, rng: rand.New(rand.NewPCG(seed, 3)), rounds: 5}
	lengths, streams, contexts := []int{64, 256, 512, 1024, 2000, 3000, 4000}, []int{2, 4, 8, 16, 32}, []int{64, 1000}
	if short {
		m.rounds, lengths, streams = 1, []int{64, 512, 2000, 4000}, []int{4, 16}
	}
	speed, points, err := m.fit(ctx, lengths, streams, contexts)
	if err != nil {
		return err
	}
	speed.Capacity = int(w.capacity)
	fmt.Printf("a step takes %.3f ms\n  + %.2f µs a prompt token\n  + %.4f µs a prompt token and 1000 tokens before it\n  + %.3f ms a running request\n  + %.3f ms a running request and 1000 tokens that it reads\n",
		1e3*speed.Base, 1e6*speed.PerPrefill, 1e9*speed.PerPair, 1e3*speed.PerDecode, 1e6*speed.PerContext)
	fmt.Printf("capacity %d tokens\n\n", speed.Capacity)
	sum := 0.0
	for _, p := range points {
		fmt.Printf("  %-32s measured %8.2f ms  fitted %8.2f ms  %+5.1f %%\n", p.name, 1e3*p.measured, 1e3*p.fitted, 100*(p.fitted/p.measured-1))
		sum += math.Abs(p.fitted/p.measured - 1)
	}
	fmt.Printf("mean error %.1f %%\n\n", 100*sum/float64(len(points)))
	if err := m.check(ctx, speed, short, seed); err != nil {
		return err
	}
	fmt.Printf("\nvar Fitted = Speed{Base: %.3g, PerPrefill: %.3g, PerPair: %.3g, PerDecode: %.3g, PerContext: %.3g, Budget: %d, Capacity: %d, Longest: 8000}\n",
		speed.Base, speed.PerPrefill, speed.PerPair, speed.PerDecode, speed.PerContext, speed.Budget, speed.Capacity)
	return nil
}

// meter takes measurements of one worker.
type meter struct {
	w      *worker
	rng    *rand.Rand
	rounds int
}

type point struct {
	name             string
	measured, fitted float64 // seconds
	basis            []float64
}

// prompt draws token ids that no prompt before began with, so that nothing of
// it is cached.
func (m *meter) prompt(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 300 + m.rng.IntN(1000)
	}
	return out
}

// fit measures steps of known make-up: one prompt alone, and equal streams
// decoding together.
func (m *meter) fit(ctx context.Context, lengths, streams, contexts []int) (sim.Speed, []point, error) {
	var decode, prefill []point
	for _, k := range streams {
		for _, length := range contexts {
			gap, err := m.gap(ctx, k, length)
			if err != nil {
				return sim.Speed{}, nil, err
			}
			decode = append(decode, point{name: fmt.Sprintf("%d streams of %d tokens", k, length), measured: gap, basis: []float64{1, float64(k), float64(k * length)}})
		}
	}
	d := solve(decode)
	for _, n := range lengths {
		took, err := m.first(ctx, n)
		if err != nil {
			return sim.Speed{}, nil, err
		}
		steps := math.Ceil(float64(n) / budget)
		// What the steps cost by themselves is known from the streams.
		prefill = append(prefill, point{name: fmt.Sprintf("a prompt of %d tokens", n), measured: took - steps*d[0], basis: []float64{float64(n), float64(n) * float64(n) / 2}})
	}
	p := solve(prefill)
	speed := sim.Speed{Base: d[0], PerDecode: d[1], PerContext: d[2], PerPrefill: p[0], PerPair: p[1], Budget: budget}
	for i := range decode {
		decode[i].fitted = dot(decode[i].basis, d)
	}
	for i := range prefill {
		steps := math.Ceil(float64(lengths[i])/budget) * d[0]
		prefill[i].measured += steps
		prefill[i].fitted = dot(prefill[i].basis, p) + steps
	}
	return speed, append(decode, prefill...), nil
}

// first is the time to the first token of one prompt alone: the least of some,
// for whatever else the machine does only adds to it.
func (m *meter) first(ctx context.Context, n int) (float64, error) {
	var all []float64
	for range m.rounds {
		a, err := m.w.ask(ctx, m.prompt(n), 2)
		if err != nil {
			return 0, err
		}
		all = append(all, a.at[0].Sub(a.sent).Seconds())
	}
	return slices.Min(all), nil
}

// gap is the time between two tokens while k streams of a length decode: the
// least of some.
func (m *meter) gap(ctx context.Context, k, length int) (float64, error) {
	const tokens = 48
	var all []float64
	for range m.rounds {
		answers := make([]*answer, k)
		errs := make([]error, k)
		var together sync.WaitGroup
		for i := range k {
			prompt := m.prompt(length)
			together.Go(func() { answers[i], errs[i] = m.w.ask(ctx, prompt, tokens+k) })
		}
		together.Wait()
		// Between the last one's first token and the first one's last all were there.
		from, until := time.Time{}, time.Now()
		for i, a := range answers {
			if errs[i] != nil {
				return 0, errs[i]
			}
			if a.at[0].After(from) {
				from = a.at[0]
			}
			if last := a.at[len(a.at)-1]; last.Before(until) {
				until = last
			}
		}
		n := 0
		for _, at := range answers[0].at {
			if !at.Before(from) && !at.After(until) {
				n++
			}
		}
		if n > 1 {
			all = append(all, until.Sub(from).Seconds()/float64(n))
		}
	}
	if len(all) == 0 {
		return 0, fmt.Errorf("%d streams of %d tokens never ran together", k, length)
	}
	return slices.Min(all), nil
}

// check plays mixed traffic on the worker and on the simulated engine.
func (m *meter) check(ctx context.Context, speed sim.Speed, short bool, seed uint64) error {
	n := 120
	if short {
		n = 30
	}
	rng := rand.New(rand.NewPCG(seed, 9))
	jobs := make([]sim.Job, n)
	work := 0.0
	for i := range jobs {
		j := &jobs[i]
		j.Prompt, j.Output = 50+rng.IntN(700), 10+rng.IntN(60)
		if rng.IntN(6) == 0 {
			j.Prompt = 2000 + rng.IntN(3000)
		}
		work += speed.Work(j)
	}
	at := 0.0
	for i := range jobs { // a load of 60 %
		at += rng.ExpFloat64() * work / float64(n) / 0.6
		jobs[i].At = at
	}
	real := make([]float64, n)
	errs := make([]error, n)
	var all sync.WaitGroup
	began := time.Now()
	for i, j := range jobs {
		time.Sleep(time.Until(began.Add(time.Duration(j.At * float64(time.Second)))))
		prompt := m.prompt(j.Prompt)
		all.Go(func() {
			a, err := m.w.ask(ctx, prompt, j.Output)
			if errs[i] = err; err == nil {
				real[i] = a.at[0].Sub(a.sent).Seconds()
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	o := sim.Run(&sim.Scenario{Workers: []sim.Speed{speed}, Jobs: jobs}, sim.Policies()[0](), 1)
	slices.Sort(real)
	p50, p90 := real[n/2], real[n*9/10]
	fmt.Printf("mixed traffic at 60 %% load, %d requests: time to first token, worker / simulated\n  p50 %7.1f / %7.1f ms  %+5.1f %%\n  p90 %7.1f / %7.1f ms  %+5.1f %%\n",
		n, 1e3*p50, 1e3*o.P50, 100*(o.P50/p50-1), 1e3*p90, 1e3*o.P90, 100*(o.P90/p90-1))
	return bufio.NewWriter(os.Stdout).Flush()
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

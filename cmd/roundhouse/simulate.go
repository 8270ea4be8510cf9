package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"roundhouse/balancer/sim"
	"roundhouse/balancer/sim/fitted"
	"roundhouse/measure/bench"
)

// simulateFlags say which fleet is simulated, and under which traffic.
type simulateFlags struct {
	speed, fit       string
	workers          []int
	policies         []string
	seats, budget    int
	capacity         int
	trace            string
	times            float64
	prompts          int
	rate, burstiness float64
	input, output    int
	spread           float64
	slo              string
	target, price    float64
	seed             uint64
	json, short      bool
	command          string // whose flags they are
}

// usage reports what the command line has wrong.
func (f *simulateFlags) usage(format string, args ...any) error {
	return usageError(f.command+": "+format, args...)
}

// traffic are the flags that say what is asked of the engines, and what these are.
func (f *simulateFlags) traffic(s *pflag.FlagSet) {
	s.StringVar(&f.speed, "speed", "ours", "the workers' constants: a file of simulate --fit, ours (two cores, 0.6B) or accelerator")
	s.IntVar(&f.capacity, "kv-tokens", 0, "tokens of KV, instead of the constants'")
	s.StringVar(&f.trace, "trace", "", "recorded traffic: Azure's CSV or Mooncake's JSON lines")
	s.Float64Var(&f.times, "times", 1, "play a trace so many times faster")
	s.IntVar(&f.prompts, "num-prompts", 1000, "how many requests, of a trace at most")
	s.Float64Var(&f.rate, "request-rate", 1, "requests a second")
	s.Float64Var(&f.burstiness, "burstiness", 1, "1: Poisson; less: bursts")
	s.IntVar(&f.input, "random-input-len", 1024, "tokens of a prompt")
	s.IntVar(&f.output, "random-output-len", 128, "tokens of an answer")
	s.Float64Var(&f.spread, "random-range-ratio", 0.5, "lengths vary by this share")
	s.StringVar(&f.slo, "slo", "chat", "what a good answer is: chat, completion, rag, agent or batch")
	s.Uint64Var(&f.seed, "seed", 1, "of traffic and choices")
	s.BoolVar(&f.json, "json", false, "print JSON")
}

// simulateCommand plays traffic on a fleet that is not there.
func simulateCommand(c *console) *cobra.Command {
	f := simulateFlags{command: "simulate"}
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Play traffic on simulated workers: how many, with which settings",
		Long: `Play recorded or described traffic on simulated workers, placed by the code that
serves. Every figure is simulated; how near it comes, docs/measure.md tells. First
measure a worker of yours, which must have nothing else to do:

  roundhouse simulate --fit http://127.0.0.1:8010 --speed mine.json
  roundhouse simulate --speed mine.json --workers 2,3,4 --request-rate 12 --slo chat
  roundhouse simulate --speed mine.json --workers 8 --trace conversations.jsonl`,
		GroupID: groupLook,
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.fit != "" {
				return c.fitSpeed(cmd.Context(), &f)
			}
			return c.simulate(&f)
		},
	}
	s := cmd.Flags()
	f.traffic(s)
	s.StringVar(&f.fit, "fit", "", "measure the worker at this URL, which must have nothing else to do, and write --speed")
	s.BoolVar(&f.short, "short", false, "of --fit: fewer points, each measured once")
	s.IntSliceVar(&f.workers, "workers", []int{1}, "how many workers; several numbers are compared")
	s.StringSliceVar(&f.policies, "policy", []string{"least_kv"}, "least_kv, fastest, round_robin; several are compared")
	s.IntVar(&f.seats, "max-num-seqs", 0, "requests at once of a worker, instead of the constants'")
	s.IntVar(&f.budget, "max-num-batched-tokens", 0, "tokens of a step, instead of the constants'; of --fit: the worker's own (default 2048)")
	s.Float64Var(&f.target, "target", 0.99, "the share of good answers that is enough")
	s.Float64Var(&f.price, "price", 0, "of a worker's hour, for the price of a million tokens")
	return cmd
}

// simulated is the outcome of one fleet. All of it is simulated.
type simulated struct {
	Workers     int        `json:"workers"`
	Policy      string     `json:"policy"`
	TTFT        sim.Spread `json:"ttft_seconds"`
	TPOT        sim.Spread `json:"tpot_seconds"`
	E2EL        sim.Spread `json:"e2el_seconds"`
	Queue       sim.Spread `json:"queue_seconds"`
	Good        float64    `json:"good"` // share of requests that meet the goal
	Preemptions int        `json:"preemptions"`
	Throughput  float64    `json:"output_tokens_per_second"`
	Price       *float64   `json:"price_of_a_million_tokens"`
}

// simulate plays the traffic on every fleet that is asked for.
func (c *console) simulate(f *simulateFlags) error {
	speed, err := f.constants()
	if err != nil {
		return err
	}
	goal, err := f.goal()
	if err != nil {
		return err
	}
	var all []simulated
	for _, n := range f.workers {
		if n < 1 || n > 1024 {
			return usageError("simulate: --workers %d: want 1 to 1024", n)
		}
		s, err := f.scenario(sim.SameSpeed(n, speed))
		if err != nil {
			return err
		}
		s.Goal = inSeconds(goal)
		for _, name := range f.policies {
			p, err := policyOf(name)
			if err != nil {
				return err
			}
			o := sim.Run(&s, p, f.seed)
			x := simulated{Workers: n, Policy: name, TTFT: o.TTFT, TPOT: o.TPOT, E2EL: o.E2EL, Queue: o.Queue, Good: o.Good, Preemptions: o.Preemptions,
				Throughput: float64(o.Tokens) / o.Seconds}
			if f.price > 0 {
				price := f.price * float64(n) / 3600 / x.Throughput * 1e6
				x.Price = &price
			}
			all = append(all, x)
		}
	}
	if f.json {
		return c.printJSON(map[string]any{"schema": 1, "simulated": true, "speed": speed, "outcomes": all})
	}
	return f.print(c, all)
}

// goal is what --slo names.
func (f *simulateFlags) goal() (bench.Goal, error) {
	goal, ok := bench.Goals[f.slo]
	if !ok {
		return goal, f.usage("--slo %q: want chat, completion, rag, agent or batch", f.slo)
	}
	return goal, nil
}

// inSeconds is a goal as the simulator has it.
func inSeconds(g bench.Goal) sim.Goal {
	return sim.Goal{TTFT: g.TTFT / 1000, TPOT: g.TPOT / 1000, E2EL: g.E2EL / 1000}
}

// policyOf makes a policy of the door by its name.
func policyOf(name string) (sim.Policy, error) {
	name = strings.ReplaceAll(name, "_", " ")
	if name == "least kv" {
		name = "least_kv"
	}
	var names []string
	for _, make := range sim.Policies() {
		p := make()
		if p.Name() == name {
			return p, nil
		}
		names = append(names, p.Name())
	}
	return nil, usageError("simulate: --policy %q: want one of %s", name, strings.Join(names, ", "))
}

// constants are the workers' speed, with what the flags change of it.
func (f *simulateFlags) constants() (sim.Speed, error) {
	speed, known := map[string]sim.Speed{"ours": sim.Fitted, "accelerator": sim.Accelerator}[f.speed]
	if !known {
		text, err := os.ReadFile(f.speed)
		if err != nil {
			return speed, f.usage("--speed: %w; roundhouse simulate --fit URL --speed FILE makes it", err)
		}
		if err := json.Unmarshal(text, &speed); err != nil {
			return speed, f.usage("--speed %s: %w", f.speed, err)
		}
	}
	for from, into := range map[*int]*int{&f.seats: &speed.Seats, &f.budget: &speed.Budget, &f.capacity: &speed.Capacity} {
		if *from > 0 {
			*into = *from
		}
	}
	positive := speed.Base > 0 && speed.PerPrefill >= 0 && speed.PerDecode >= 0 && speed.PerPair >= 0 && speed.PerContext >= 0
	if !positive || speed.Budget < 1 || speed.Capacity < 1 || speed.Longest < 1 {
		return speed, f.usage("--speed %s: want times of 0 or more, a base_seconds above 0, and max_num_batched_tokens, kv_capacity_tokens and max_prompt_tokens of 1 or more", f.speed)
	}
	return speed, nil
}

// scenario is the traffic on some workers.
func (f *simulateFlags) scenario(workers []sim.Speed) (sim.Scenario, error) {
	if f.prompts < 1 || f.rate <= 0 || f.times <= 0 || f.burstiness <= 0 || f.spread < 0 || f.spread >= 1 || f.input < 1 || f.output < 1 {
		return sim.Scenario{}, f.usage("numbers of requests, rates, lengths and times are above 0, --random-range-ratio is 0 to less than 1")
	}
	if f.trace != "" {
		s, err := sim.Trace(f.trace, workers, f.times, f.prompts)
		if err != nil {
			return s, fmt.Errorf("%s: --trace: %w", f.command, err)
		}
		return s, f.fits(&s)
	}
	rng := rand.New(rand.NewPCG(f.seed, 11))
	due := bench.Schedule(f.prompts, bench.Load{Rate: f.rate, Burstiness: f.burstiness}, rng)
	around := func(n int) int {
		low, high := int(float64(n)*(1-f.spread)), int(float64(n)*(1+f.spread))
		return max(1, low+rng.IntN(high-low+1))
	}
	s := sim.Scenario{Workers: workers, Stale: 0.25}
	for _, at := range due {
		s.Jobs = append(s.Jobs, sim.Job{At: at.Seconds(), Prompt: around(f.input), Output: around(f.output)})
	}
	return s, f.fits(&s)
}

// fits reports a request that no worker can hold: it would wait for ever.
func (f *simulateFlags) fits(s *sim.Scenario) error {
	capacity := s.Workers[0].Capacity
	for i := range s.Jobs {
		if j := &s.Jobs[i]; j.Prompt+j.Output > capacity {
			return f.usage("a request of %d and %d tokens does not fit into the %d of a worker's KV cache", j.Prompt, j.Output, capacity)
		}
	}
	return nil
}

// print prints outcomes side by side, and how many workers are enough.
func (f *simulateFlags) print(c *console, all []simulated) error {
	fmt.Fprintf(c.out, "simulated; goal %s, seconds at p50 / p95\n", f.slo)
	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "workers\tpolicy\tTTFT\tTPOT\tE2EL\tqueue\tgood\tpreempted\ttokens/s\tprice of 1M tokens")
	two := func(s sim.Spread) string { return fmt.Sprintf("%.3f / %.3f", s.P50, s.P95) }
	for _, x := range all {
		price := "-"
		if x.Price != nil {
			price = strconv.FormatFloat(*x.Price, 'f', 2, 64)
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%.1f %%\t%d\t%.0f\t%s\n", x.Workers, x.Policy, two(x.TTFT), two(x.TPOT), two(x.E2EL), two(x.Queue), 100*x.Good, x.Preemptions, x.Throughput, price)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	enough := math.MaxInt
	for _, x := range all {
		if x.Good >= f.target {
			enough = min(enough, x.Workers)
		}
	}
	most := slices.Max(f.workers)
	if enough > most {
		fmt.Fprintf(c.out, "%s are too few: fewer than %g %% of the answers are good\n", count(most, "worker"), 100*f.target)
		return nil
	}
	fmt.Fprintf(c.out, "%s: at least %g %% of the answers are good\n", count(enough, "worker"), 100*f.target)
	return nil
}

// fitSpeed measures a worker and writes its constants.
func (c *console) fitSpeed(ctx context.Context, f *simulateFlags) error {
	if f.speed == "ours" || f.speed == "accelerator" {
		return usageError("simulate: --fit wants --speed FILE, where the constants go")
	}
	if f.budget == 0 {
		f.budget = 2048
	}
	key, _ := c.env("OPENAI_API_KEY")
	o := fitted.Options{Key: key, Budget: f.budget, Seats: f.seats, Short: f.short, Seed: f.seed}
	m, err := fitted.New(ctx, f.fit, o)
	if err != nil {
		return &codedError{exitUnreachable, fmt.Errorf("simulate: --fit: %w", err)}
	}
	began := time.Now()
	speed, points, mixed, err := m.Fit(ctx, o)
	if err != nil {
		return fmt.Errorf("simulate: --fit: %w", err)
	}
	for _, p := range points {
		fmt.Fprintf(c.out, "%-30s %8.1f ms, fitted %8.1f ms\n", p.Name, 1000*p.Measured, 1000*p.Fitted)
	}
	fmt.Fprintf(c.out, "mean error %.1f %%, measured in %.0f s\n", 100*fitted.Error(points), time.Since(began).Seconds())
	if err := os.WriteFile(f.speed, indented(speed), 0o644); err != nil {
		return unwritten(f.speed, err)
	}
	real, simulated := mixed.Real, mixed.Simulated
	off := func(a, b float64) float64 { return 100 * (b/a - 1) }
	fmt.Fprintf(c.out, "%s of mixed traffic between the rounds, not fitted to, simulated against measured: TTFT p50 %+.0f %%, p95 %+.0f %%; TPOT p50 %+.0f %%, p95 %+.0f %%; E2EL p50 %+.0f %%, p95 %+.0f %%\n",
		count(mixed.Requests, "request"), off(real.TTFT.P50, simulated.TTFT.P50), off(real.TTFT.P95, simulated.TTFT.P95),
		off(real.TPOT.P50, simulated.TPOT.P50), off(real.TPOT.P95, simulated.TPOT.P95), off(real.E2EL.P50, simulated.E2EL.P50), off(real.E2EL.P95, simulated.E2EL.P95))
	return nil
}

// Command fit measures a real worker and prints the constants of the simulator's
// engine that come nearest to it, with their error: at the points that they were
// fitted to, on mixed traffic between the rounds of measuring, and in the order of
// five settings. It takes some minutes and wants the machine for itself.
//
//	go run ./balancer/sim/fit [-short] [-worker bin/roundhouse-worker] [-model FOLDER|demo]
//	go run ./balancer/sim/fit -engine "vllm serve MODEL --host 127.0.0.1 --port {port} {args}"
//
// With -constants FILE the two halves may be run apart: if there is no such file it is
// written, else it is read and the settings' order alone is measured.
//
// The model is one whose steps dominate what HTTP and this client cost beside
// them; the demonstration model (demo) is small for that. bench-engine makes it:
//
//	go run ./worker/bench/engine -shapes qwen3-0.6b -only start
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"roundhouse/balancer/sim"
	"roundhouse/balancer/sim/fitted"
)

// command is how a worker is started.
type command struct {
	program string
	engine  string // a shell's command instead, with {port} and {args}
	args    []string
	budget  int // tokens of a step
}

func main() {
	var c command
	flag.StringVar(&c.program, "worker", "bin/roundhouse-worker", "the worker's program")
	flag.StringVar(&c.engine, "engine", "", "another engine's command, with {port} and {args}")
	model := flag.String("model", "build/bench/qwen3-0.6b", "the folder of the model, whose weights are taken in int4; demo is the built-in one")
	file := flag.String("constants", "", "where the constants are, or go")
	seats := flag.String("seats", "1,2,4,8,32", "the settings whose order the simulation must know")
	short := flag.Bool("short", false, "fewer points, each measured once")
	seed := flag.Uint64("seed", 1, "of the prompts and of the mixed traffic")
	flag.Parse()
	if err := run(&c, *model, *file, *seats, *short, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "fit:", err)
		os.Exit(1)
	}
}

// What the worker is started with: a step of so many tokens, and prompts of at
// most so many.
const (
	budget  = 256
	longest = 4000
)

func run(c *command, model, file, list string, short bool, seed uint64) error {
	var seats []int
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return fmt.Errorf("-seats %q: want numbers from 1, e.g. 1,2,4", list)
		}
		seats = append(seats, n)
	}
	c.budget = budget
	c.args = []string{"--max-model-len", strconv.Itoa(longest + 96)}
	if model != "demo" && c.engine == "" {
		if _, err := os.Stat(filepath.Join(model, "config.json")); err != nil {
			return fmt.Errorf("%w: make the model with go run ./worker/bench/engine -shapes %s -only start", err, filepath.Base(model))
		}
		c.args = append(c.args, "--model", model, "--quantization", "sym_int4", "--weights-cache", filepath.Join(model, "cache"))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var speed sim.Speed
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &speed)
		c.budget = speed.Budget
	} else {
		speed, err = constants(ctx, c, file, short, seed)
	}
	if err != nil {
		return err
	}
	rounds, n := 2, 80
	if short || c.engine != "" {
		rounds, n = 1, 40
	}
	return order(ctx, c, speed, seats, rounds, n, seed)
}

// constants measures a worker, and how far the simulation is off.
func constants(ctx context.Context, c *command, file string, short bool, seed uint64) (sim.Speed, error) {
	w, err := c.start(ctx)
	if err != nil {
		return sim.Speed{}, err
	}
	defer w.stop()
	o := fitted.Options{Budget: budget, Short: short, Seed: seed}
	m, err := fitted.New(ctx, w.url, o)
	if err != nil {
		return sim.Speed{}, err
	}
	speed, points, mixed, err := m.Fit(ctx, o)
	if err != nil {
		return speed, err
	}
	speed.Longest = min(speed.Longest, longest)
	for _, p := range points {
		fmt.Printf("  %-32s measured %8.1f ms  fitted %8.1f ms  %+5.1f %%\n", p.Name, 1e3*p.Measured, 1e3*p.Fitted, 100*(p.Fitted/p.Measured-1))
	}
	fmt.Printf("mean error %.1f %%\n\n", 100*fitted.Error(points))
	fmt.Printf("%d requests of mixed traffic at 60 %% load, between the rounds, worker / simulated:\n", mixed.Requests)
	show(mixed)
	text, err := json.Marshal(speed)
	if err != nil {
		return speed, err
	}
	fmt.Printf("\n%s\n", text)
	if file != "" {
		err = os.WriteFile(file, text, 0o644)
	}
	return speed, err
}

// show prints a comparison.
func show(c fitted.Comparison) {
	real, simulated := c.Real, c.Simulated
	for _, row := range []struct {
		name            string
		real, simulated sim.Spread
	}{{"TTFT", real.TTFT, simulated.TTFT}, {"TPOT", real.TPOT, simulated.TPOT}, {"E2EL", real.E2EL, simulated.E2EL}} {
		fmt.Printf("  %s p50 %8.4f / %8.4f s %+5.1f %%, p95 %8.4f / %8.4f s %+5.1f %%\n", row.name,
			row.real.P50, row.simulated.P50, 100*(row.simulated.P50/row.real.P50-1), row.real.P95, row.simulated.P95, 100*(row.simulated.P95/row.real.P95-1))
	}
}

// Command fit measures a real worker and prints the constants of the simulator's
// engine that come nearest to it, with their error: at the points that they were
// fitted to, on mixed traffic between the rounds of measuring, and in the order of
// five settings. It takes some minutes and wants the machine for itself.
//
//	go run ./balancer/sim/fit [-short] [-worker bin/roundhouse-worker] [-model FOLDER|demo]
//
// The model is one whose steps dominate what HTTP and this client cost beside
// them; the demonstration model (demo) is small for that. bench-engine makes it:
//
//	go run ./worker/bench/engine -shapes qwen3-0.6b -only start
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"roundhouse/balancer/sim"
	"roundhouse/balancer/sim/fitted"
)

func main() {
	program := flag.String("worker", "bin/roundhouse-worker", "the worker's program")
	model := flag.String("model", "build/bench/qwen3-0.6b", "the folder of the model, whose weights are taken in int4; demo is the built-in one")
	short := flag.Bool("short", false, "fewer points, each measured once")
	seed := flag.Uint64("seed", 1, "of the prompts and of the mixed traffic")
	flag.Parse()
	if err := run(*program, *model, *short, *seed); err != nil {
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

func run(program, model string, short bool, seed uint64) error {
	args := []string{"--max-model-len", strconv.Itoa(longest + 96)}
	if model != "demo" {
		if _, err := os.Stat(filepath.Join(model, "config.json")); err != nil {
			return fmt.Errorf("%w: make the model with go run ./worker/bench/engine -shapes %s -only start", err, filepath.Base(model))
		}
		args = append(args, "--model", model, "--quantization", "sym_int4", "--weights-cache", filepath.Join(model, "cache"))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w, err := start(ctx, program, args...)
	if err != nil {
		return err
	}
	defer w.stop()
	o := fitted.Options{Budget: budget, Short: short, Seed: seed}
	m, err := fitted.New(ctx, w.url, o)
	if err != nil {
		return err
	}
	speed, points, mixed, err := m.Fit(ctx, o)
	if err != nil {
		return err
	}
	speed.Longest = longest
	fmt.Printf("a step takes %.2f ms\n  + %.3f ms a prompt token\n  + %.3f ms a prompt token and 1000 tokens before it\n  + %.3f ms a running request\n  + %.3f ms a running request and 1000 tokens that it reads\n",
		1e3*speed.Base, 1e3*speed.PerPrefill, 1e6*speed.PerPair, 1e3*speed.PerDecode, 1e6*speed.PerContext)
	fmt.Printf("capacity %d tokens\n\n", speed.Capacity)
	for _, p := range points {
		fmt.Printf("  %-32s measured %8.1f ms  fitted %8.1f ms  %+5.1f %%\n", p.Name, 1e3*p.Measured, 1e3*p.Fitted, 100*(p.Fitted/p.Measured-1))
	}
	fmt.Printf("mean error %.1f %%\n\n", 100*fitted.Error(points))
	real, simulated := mixed.Real, mixed.Simulated
	fmt.Printf("mixed traffic at 60 %% load, between the rounds: worker / simulated\n")
	for _, row := range []struct {
		name            string
		real, simulated sim.Spread
	}{{"TTFT", real.TTFT, simulated.TTFT}, {"TPOT", real.TPOT, simulated.TPOT}, {"E2EL", real.E2EL, simulated.E2EL}} {
		fmt.Printf("  %s p50 %7.3f / %7.3f s %+5.1f %%, p95 %7.3f / %7.3f s %+5.1f %%\n", row.name, row.real.P50, row.simulated.P50, 100*(row.simulated.P50/row.real.P50-1), row.real.P95, row.simulated.P95, 100*(row.simulated.P95/row.real.P95-1))
	}
	fmt.Printf("\nvar Fitted = Speed{Base: %.3g, PerPrefill: %.3g, PerPair: %.3g, PerDecode: %.3g, PerContext: %.3g, Budget: %d, Capacity: %d, Longest: %d}\n",
		speed.Base, speed.PerPrefill, speed.PerPair, speed.PerDecode, speed.PerContext, speed.Budget, speed.Capacity, speed.Longest)
	w.stop()
	n := 36
	if short {
		n = 12
	}
	return order(ctx, program, args, speed, n, seed)
}

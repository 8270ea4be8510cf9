// Command fit measures a real worker and prints the constants of the simulator's
// engine that come nearest to it, with their error: at the points that they were
// fitted to, and on mixed traffic that they were not. It takes three minutes and
// wants the machine for itself.
//
//	go run ./balancer/sim/fit [-short] [-worker bin/roundhouse-worker] [-model FOLDER]
//
// The model is one whose steps dominate what HTTP and this client cost beside
// them; the demonstration model is too small for that. bench-engine makes it:
//
//	go run ./worker/bench/engine -shapes qwen3-0.6b -only start
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"roundhouse/balancer/sim"
)

func main() {
	program := flag.String("worker", "bin/roundhouse-worker", "the worker's program")
	model := flag.String("model", "build/bench/qwen3-0.6b", "the folder of the model; its weights are taken in int4")
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
	if _, err := os.Stat(filepath.Join(model, "config.json")); err != nil {
		return fmt.Errorf("%w: make the model with go run ./worker/bench/engine -shapes %s -only start", err, filepath.Base(model))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w, err := start(ctx, program, "--model", model, "--quantization", "sym_int4", "--weights-cache", filepath.Join(model, "cache"), "--max-model-len", strconv.Itoa(longest+96))
	if err != nil {
		return err
	}
	defer w.stop()
	m := &meter{w: w, rng: rand.New(rand.NewPCG(seed, 3))}
	points, err := m.points(ctx, short)
	if err != nil {
		return err
	}
	c := solve(points)
	speed := sim.Speed{
		Base: c[0], PerPrefill: c[1], PerPair: c[2], PerDecode: c[3], PerContext: c[4],
		Budget: budget, Capacity: int(w.capacity), Longest: longest,
	}
	fmt.Printf("a step takes %.2f ms\n  + %.3f ms a prompt token\n  + %.3f ms a prompt token and 1000 tokens before it\n  + %.3f ms a running request\n  + %.3f ms a running request and 1000 tokens that it reads\n",
		1e3*speed.Base, 1e3*speed.PerPrefill, 1e6*speed.PerPair, 1e3*speed.PerDecode, 1e6*speed.PerContext)
	fmt.Printf("capacity %d tokens\n\n", speed.Capacity)
	sum := 0.0
	for _, p := range points {
		fitted := dot(p.basis, c)
		fmt.Printf("  %-32s measured %8.1f ms  fitted %8.1f ms  %+5.1f %%\n", p.name, 1e3*p.measured, 1e3*fitted, 100*(fitted/p.measured-1))
		sum += math.Abs(fitted/p.measured - 1)
	}
	fmt.Printf("mean error %.1f %%\n\n", 100*sum/float64(len(points)))
	if err := m.check(ctx, speed, short, seed); err != nil {
		return err
	}
	fmt.Printf("\nvar Fitted = Speed{Base: %.3g, PerPrefill: %.3g, PerPair: %.3g, PerDecode: %.3g, PerContext: %.3g, Budget: %d, Capacity: %d, Longest: %d}\n",
		speed.Base, speed.PerPrefill, speed.PerPair, speed.PerDecode, speed.PerContext, speed.Budget, speed.Capacity, speed.Longest)
	return nil
}

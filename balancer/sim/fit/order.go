package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"roundhouse/balancer/sim"
	"roundhouse/balancer/sim/fitted"
	"roundhouse/measure/stat"
)

// seats are the settings whose order the simulation must know.
var seats = []int{1, 2, 4, 8, 32}

// order plays the same traffic on a worker of each number of seats, in an order drawn at
// random, and on the simulated engine, and prints how alike the two orders are.
func order(ctx context.Context, program string, args []string, speed sim.Speed, n int, seed uint64) error {
	jobs := fitted.Mixed(&speed, n, 0.9, seed+100)
	var measured, simulated []float64
	fmt.Printf("\nseats: E2EL in the mean, worker / simulated\n")
	for _, i := range rand.New(rand.NewPCG(seed, 5)).Perm(len(seats)) {
		w, err := start(ctx, program, append([]string{"--max-num-seqs", strconv.Itoa(seats[i])}, args...)...)
		if err != nil {
			return err
		}
		c, err := compared(ctx, w.url, speed, seats[i], jobs, seed)
		w.stop()
		if err != nil {
			return err
		}
		measured, simulated = append(measured, c.Real.E2EL.Mean), append(simulated, c.Simulated.E2EL.Mean)
		fmt.Printf("  %3d %7.3f / %7.3f s %+5.1f %%\n", seats[i], c.Real.E2EL.Mean, c.Simulated.E2EL.Mean, 100*(c.Simulated.E2EL.Mean/c.Real.E2EL.Mean-1))
	}
	fmt.Printf("the order of %d settings: Kendall's tau %.2f (0.8 and more is good)\n", len(seats), stat.Kendall(measured, simulated))
	return nil
}

// compared plays traffic on a worker and on the simulated engine.
func compared(ctx context.Context, url string, speed sim.Speed, n int, jobs []sim.Job, seed uint64) (fitted.Comparison, error) {
	m, err := fitted.New(ctx, url, fitted.Options{Budget: budget, Seats: n, Seed: seed})
	if err != nil {
		return fitted.Comparison{}, err
	}
	p, err := m.Play(ctx, jobs)
	speed.Seats = n
	return fitted.Compare(speed, p), err
}

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

// band is how far a simulation may be off: settings that lie nearer to each other than that
// are alike.
const band = 0.2

// crowd is traffic under which every number of seats shows: more than a worker does, of
// answers that are long enough to share steps.
func crowd(speed *sim.Speed, n int, seed uint64) []sim.Job {
	return fitted.Mixed(speed, n, 1.5, seed+100)
}

// order plays the same traffic on a worker of each number of seats, in an order drawn at
// random each round, and on the simulated engine, and prints how alike the two orders are.
func order(ctx context.Context, c *command, speed sim.Speed, seats []int, rounds, n int, seed uint64) error {
	jobs := crowd(&speed, n, seed)
	rng := rand.New(rand.NewPCG(seed, 5))
	played := make([][]fitted.Played, len(seats))
	for range rounds {
		for _, i := range rng.Perm(len(seats)) {
			p, err := play(ctx, c, seats[i], jobs, seed)
			if err != nil {
				return err
			}
			played[i] = append(played[i], p)
		}
	}
	var ttft, e2el [2][]float64 // measured, simulated
	fmt.Printf("\n%d requests faster than they are served, worker / simulated:\n", n)
	for i, n := range seats {
		speed.Seats = n
		both := fitted.Compare(speed, played[i]...)
		fmt.Printf("--max-num-seqs %d\n", n)
		show(both)
		for k, o := range []sim.Outcome{both.Real, both.Simulated} {
			ttft[k], e2el[k] = append(ttft[k], o.TTFT.Mean), append(e2el[k], o.E2EL.Mean)
		}
	}
	fmt.Printf("the order of %d settings, those alike that are nearer than %g %%: Kendall's tau %.2f by TTFT, %.2f by E2EL (0.8 and more is good)\n",
		len(seats), 100*band, tau(ttft), tau(e2el))
	return nil
}

// tau is Kendall's tau over the pairs that differ, in what was measured, by more than the
// band: of equal settings neither is the better.
func tau(x [2][]float64) float64 { return stat.KendallApart(x[0], x[1], band) }

// play plays traffic on a worker that is started for it.
func play(ctx context.Context, c *command, n int, jobs []sim.Job, seed uint64) (fitted.Played, error) {
	w, err := c.start(ctx, "--max-num-seqs", strconv.Itoa(n))
	if err != nil {
		return fitted.Played{}, err
	}
	defer w.stop()
	m, err := fitted.New(ctx, w.url, fitted.Options{Budget: c.budget, Seats: n, Seed: seed})
	if err != nil {
		return fitted.Played{}, err
	}
	if err := m.Warm(ctx); err != nil {
		return fitted.Played{}, err
	}
	return m.Play(ctx, jobs)
}

// Package fitted finds the constants of the simulator's engine that come nearest to a
// worker which runs, by measuring it: prompts alone, and streams that decode together. It
// wants the worker for itself, for a minute or three.
package fitted

import (
	"context"
	"math"
	"math/rand/v2"

	"roundhouse/balancer/sim"
)

// Options are what a worker does not say of itself.
type Options struct {
	Key    string // that the worker asks for
	Budget int    // its --max-num-batched-tokens
	Seats  int    // its --max-num-seqs; 0: 256
	Short  bool   // fewer points, each measured once
	Seed   uint64 // of the prompts
}

// New meets the worker at a URL.
func New(ctx context.Context, url string, o Options) (*Meter, error) {
	w, err := meet(ctx, url, o.Key)
	if err != nil {
		return nil, err
	}
	return &Meter{w: w, rng: rand.New(rand.NewPCG(o.Seed, 3)), budget: o.Budget}, nil
}

// Fit measures the worker and returns its constants, with each point as it was measured
// and as they have it.
func (m *Meter) Fit(ctx context.Context, o Options) (sim.Speed, []Point, error) {
	points, err := m.points(ctx, o.Short)
	if err != nil {
		return sim.Speed{}, nil, err
	}
	c := solve(points)
	for i := range points {
		points[i].Fitted = dot(points[i].basis, c)
	}
	longest := m.w.longest
	if longest == 0 {
		longest = int(m.w.capacity)
	}
	return sim.Speed{
		Base: c[0], PerPrefill: c[1], PerPair: c[2], PerDecode: c[3], PerContext: c[4],
		Budget: o.Budget, Capacity: int(m.w.capacity), Longest: longest, Seats: o.Seats, InOrder: !m.w.ours,
	}, points, nil
}

// Error is the mean of the points' relative errors.
func Error(points []Point) (sum float64) {
	for _, p := range points {
		sum += math.Abs(p.Fitted/p.Measured-1) / float64(len(points))
	}
	return sum
}

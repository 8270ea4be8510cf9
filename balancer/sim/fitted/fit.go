// Package fitted finds the constants of the simulator's engine that come nearest to a
// worker which runs, by measuring it: prompts alone, and streams that decode together. It
// wants the worker for itself, for a minute or three.
package fitted

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

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
// and as they have it. It does so in rounds, each of which plays some mixed traffic too: so
// what else the machine does falls on both sides of the comparison that it returns.
func (m *Meter) Fit(ctx context.Context, o Options) (sim.Speed, []Point, Comparison, error) {
	rounds := 3
	if o.Short {
		rounds = 1
	}
	var all [][]Point
	var played []Played
	if err := m.Warm(ctx); err != nil {
		return sim.Speed{}, nil, Comparison{}, err
	}
	for round := range rounds {
		points, err := m.points(ctx, o.Short)
		if err != nil {
			return sim.Speed{}, nil, Comparison{}, err
		}
		all = append(all, points)
		speed := m.speed(o, mean(all))
		p, err := m.Play(ctx, enough(&speed, o.Short, o.Seed+uint64(round)))
		if err != nil {
			return sim.Speed{}, nil, Comparison{}, err
		}
		played = append(played, p)
	}
	points := mean(all)
	speed := m.speed(o, points)
	return speed, points, Compare(speed, played...), nil
}

// enough is mixed traffic at 60 % of what a worker does, of about a quarter of a minute:
// of too few requests two samples of one worker differ by more than a simulation may.
func enough(speed *sim.Speed, short bool, seed uint64) []sim.Job {
	const first, seconds = 12, 15
	jobs := Mixed(speed, first, 0.6, seed)
	if short {
		return jobs
	}
	return Mixed(speed, max(first, min(100, int(first*seconds/jobs[first-1].At))), 0.6, seed)
}

// mean is each point's mean over rounds: traffic meets a machine's mean, not its best.
func mean(rounds [][]Point) []Point {
	out := slices.Clone(rounds[0])
	for i := range out {
		out[i].Measured, out[i].overhead = 0, 0
		out[i].basis = make([]float64, len(rounds[0][i].basis))
		for _, r := range rounds {
			out[i].Measured += r[i].Measured / float64(len(rounds))
			out[i].overhead += r[i].overhead / float64(len(rounds))
			for k, b := range r[i].basis {
				out[i].basis[k] += b / float64(len(rounds))
			}
		}
	}
	return out
}

// speed is the constants that come nearest to points, which it completes.
func (m *Meter) speed(o Options, points []Point) sim.Speed {
	c := solve(points)
	overhead, n := 0.0, 0.0
	for i := range points {
		points[i].Fitted = dot(points[i].basis, c)
		if points[i].prompt {
			overhead, n = overhead+points[i].overhead, n+1
		}
	}
	longest := m.w.longest
	if longest == 0 {
		longest = int(m.w.capacity)
	}
	return sim.Speed{
		Base: c[0], PerPrefill: c[1], PerPair: c[2], PerDecode: c[3], PerContext: c[4], Overhead: math.Max(0, overhead/math.Max(1, n)),
		Budget: o.Budget, Capacity: int(m.w.capacity), Longest: longest, Seats: o.Seats, InOrder: !m.w.ours,
	}
}

// Error is the mean of the points' relative errors.
func Error(points []Point) (sum float64) {
	for _, p := range points {
		sum += math.Abs(p.Fitted/p.Measured-1) / float64(len(points))
	}
	return sum
}

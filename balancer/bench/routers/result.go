package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"roundhouse/balancer/sim"
	"roundhouse/measure/stat"
)

// result is what became of one cell, by router, and of each seed.
type result struct {
	cell      sim.Cell
	simulated bool
	order     []string
	figures   map[string][]figures // by seed, in the order of the seeds
}

// play plays the cell with one seed through every router. turn changes who is first.
func (r *result) play(ctx context.Context, o options, seed uint64, turn int) error {
	s, err := r.cell.Scenario(o.seconds, seed)
	if err != nil {
		return err
	}
	var all []router
	for _, p := range routers() {
		if named(p.name, o.only) && (!p.rest || o.all || o.only != "") && (!r.simulated || p.policy != "") && (r.simulated || installed(&p, o)) {
			all = append(all, p)
		}
	}
	if len(r.order) == 0 {
		for i := range all {
			r.order = append(r.order, all[i].name)
		}
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	slots := make(chan struct{}, max(1, o.parallel))
	var failed error
	for k := range all {
		p := &all[(k+turn*5)%len(all)]
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			f, err := r.one(ctx, o, p, &s, seed)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
				return
			}
			r.figures[p.name] = append(r.figures[p.name], f)
		})
	}
	group.Wait()
	return failed
}

func (r *result) one(ctx context.Context, o options, p *router, s *sim.Scenario, seed uint64) (figures, error) {
	if !r.simulated {
		return live(ctx, o, p, s, seed)
	}
	for _, make := range sim.Policies() {
		if policy := make(); policy.Name() == p.policy {
			out := sim.Run(s, policy, seed)
			return figures{Share: out.Goodput, P50: out.P50, P99: out.P99, Mean: out.Mean}, nil
		}
	}
	return figures{}, fmt.Errorf("BUG: no policy %q in the simulator", p.policy)
}

// of is one figure of a router, by seed.
func (r *result) of(name string, figure func(*figures) float64) (list []float64) {
	for i := range r.figures[name] {
		list = append(list, figure(&r.figures[name][i]))
	}
	return list
}

// lags are how late the client and the engines were at worst.
func (r *result) lags() (client, engines float64) {
	for _, all := range r.figures {
		for i := range all {
			client, engines = max(client, all[i].Lag), max(engines, all[i].Late)
		}
	}
	return client, engines
}

// progress tells of a cell as soon as it is done.
func (r *result) progress(w io.Writer) {
	kind := "live"
	if r.simulated {
		kind = "simulated"
	}
	client, engines := r.lags()
	fmt.Fprintf(w, "%s, %s; the client at most %.0f ms late (p99), the engines %.0f (mean)\n", r.cell, kind, 1000*client, 1000*engines)
	for _, name := range r.order {
		share := r.of(name, func(f *figures) float64 { return 100 * f.Share })
		p50, p99 := r.of(name, func(f *figures) float64 { return f.P50 }), r.of(name, func(f *figures) float64 { return f.P99 })
		failed := 0
		for i := range r.figures[name] {
			failed += r.figures[name][i].Failed
		}
		fmt.Fprintf(w, "  %-32s %5.1f ± %4.1f %%  p50 %6.3f  p99 %6.3f ± %5.3f  failed %d\n", name, stat.Mean(share), half(share), stat.Mean(p50), stat.Mean(p99), half(p99), failed)
	}
}

// half is half the width of the 95 % interval of the mean; 0 of a single value.
func half(x []float64) float64 {
	in, ok := stat.MeanInterval(x)
	if !ok {
		return 0
	}
	return (in.High - in.Low) / 2
}

// kendall is how far two orders of the same things agree, from -1 to 1, by the pairs that
// both tell apart.
func kendall(a, b []float64) float64 {
	agree, pairs := 0.0, 0.0
	for i := range a {
		for k := range i {
			if d := apart(a[i], a[k]) * apart(b[i], b[k]); d != 0 {
				agree += d
				pairs++
			}
		}
	}
	if pairs == 0 {
		return 1
	}
	return agree / pairs
}

// apart is the order of two times: 0 within a twentieth.
func apart(x, y float64) float64 {
	if math.Abs(x-y) < 0.05*max(x, y) {
		return 0
	}
	return float64(cmp.Compare(x, y))
}

// best is the router with the best mean of a figure.
func (r *result) best(figure func(*figures) float64, more bool) string {
	return slices.MinFunc(r.order, func(a, b string) int {
		d := cmp.Compare(stat.Mean(r.of(a, figure)), stat.Mean(r.of(b, figure)))
		if more {
			d = -d
		}
		return d
	})
}

// differ is by how much a figure of one router is more than that of another, seed by seed,
// and whether the 95 % interval of that leaves zero out.
func (r *result) differ(one, other string, figure func(*figures) float64) (by float64, sure bool) {
	a, b := r.of(one, figure), r.of(other, figure)
	d := make([]float64, min(len(a), len(b)))
	for i := range d {
		d[i] = a[i] - b[i]
	}
	in, ok := stat.MeanInterval(d)
	return stat.Mean(d), ok && (in.Low > 0 || in.High < 0)
}

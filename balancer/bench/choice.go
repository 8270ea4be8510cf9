package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"roundhouse/balancer/ledger"
)

// choices times single choices among a thousand workers that are busy to
// different degrees, each with its charge, as a door makes them: half of the
// workers are ours, and between two choices a first token comes, from which a
// rate is learned, another answer ends, and a worker reports.
func choices() ([]figure, error) {
	const workers, live, tries = 1000, 4000, 20_000
	l, g := ledger.New(), &ledger.Group{}
	all := make([]*ledger.Worker, workers)
	for i := range all {
		all[i] = &ledger.Worker{ID: fmt.Sprintf("p/%d", i)}
	}
	l.SetGroup(g, ledger.LeastKV, all)
	rng := rand.New(rand.NewPCG(1, 2))
	now := int64(time.Second)
	report := func(i int) {
		l.Report(all[i], 1, ledger.Report{At: now, Capacity: 200_000, Used: rng.Int64N(150_000), HasPrefill: i%2 == 0})
	}
	for i, w := range all {
		l.SetWorker(w, 1, true, 200_000, now)
		report(i)
	}
	hits := make([]int32, workers)
	for range workers / 10 {
		hits[rng.IntN(workers)] = int32(rng.IntN(2000))
	}
	ask := ledger.Ask{Hits: hits}
	charges := make([]ledger.Charge, live)
	at := 0
	// one replaces the oldest charge by a new one; half of the others still wait
	// for their first tokens.
	one := func() time.Duration {
		c := &charges[at%live]
		at++
		now += int64(100 * time.Microsecond)
		l.Release(c, ledger.Served, now)
		if first := &charges[(at+live/2)%live]; first.Worker() != nil {
			l.First(first, now)
		}
		report(at % workers)
		ask.Prompt, ask.Expect, ask.Now = 100+rng.Int64N(4000), 200, now
		began := time.Now()
		l.Pick(g, &ask, c)
		return time.Since(began)
	}
	for range 2 * live {
		one()
	}
	took := make([]time.Duration, 0, tries)
	for range tries {
		took = append(took, one())
	}
	slices.Sort(took)
	allocations := testing.AllocsPerRun(1000, func() { one() })
	row := func(name, unit string, v, bound float64) figure {
		return figure{name: name, unit: unit, goals: []goal{atMost("", bound)}, rounds: []map[string]float64{{"door": v}}}
	}
	return []figure{
		{name: "a choice among 1000 workers, p50", unit: "us", rounds: []map[string]float64{{"door": float64(took[tries/2].Nanoseconds()) / 1e3}}},
		row("  p99", "us", float64(took[tries*99/100].Nanoseconds())/1e3, 20),
		row("  allocations", "a choice", allocations, 0),
	}, nil
}

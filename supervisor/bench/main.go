// Command bench sets a night's rotation beside that of a script in cron: the
// one that llm-scaler ships, with a TCP proxy in front of two engines. Both
// are lived through second by second, with the same requests from the same
// seed. It is a model of what both do, not a measurement of engines: a start
// takes as long as it is told to, and an answer too.
//
//	go run ./supervisor/bench [-seed N]
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"time"

	"roundhouse/supervisor/core"
)

// horizon is how long is lived through, from 03:00 on.
const horizon = 90 * 60

// night is what both have to live through.
type night struct {
	start   int     // seconds from start to ready
	longest int     // seconds that an answer takes at most
	rate    float64 // requests a second
	seed    uint64
}

// result is what came of it.
type result struct {
	down      int // seconds in which nobody could answer
	lost      int // answers cut off
	refused   int // requests that found nobody
	idle      int // GPU-seconds that served nobody
	rotations int
}

func main() {
	seed := flag.Uint64("seed", 1, "of the requests")
	flag.Parse()
	fmt.Printf("90 minutes from 03:00, two GPUs, 2 requests a second, seed %d\n\n", *seed)
	fmt.Println("| start | longest answer | | without service | cut off | refused | GPU idle | engine starts |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, n := range nights(*seed) {
		fmt.Println(row(n, "script in cron", script(n)))
		fmt.Println(row(n, "roundhouse", ours(n)))
	}
}

// nights are the engines that are compared: quick ones to slow ones.
func nights(seed uint64) []night {
	return []night{{30, 20, 2, seed}, {120, 30, 2, seed}, {180, 30, 2, seed}, {300, 120, 2, seed}}
}

// row is one line of the table.
func row(n night, who string, r result) string {
	return fmt.Sprintf("| %d s | %d s | %s | %d s | %d | %d | %.0f %% | %d |",
		n.start, n.longest, who, r.down, r.lost, r.refused, float64(r.idle)/(2*horizon)*100, r.rotations)
}

// engine is one of the two.
type engine struct {
	running bool
	since   int
	inUse   bool  // the proxy, or the door, sends requests here
	ends    []int // when each of its answers ends
}

func (e *engine) ready(now, start int) bool { return e.running && now-e.since >= start }

func (e *engine) stop(r *result) {
	r.lost += len(e.ends)
	e.running, e.ends = false, nil
}

// requests lets a second's requests come and go.
func requests(n night, r *rand.Rand, now int, engines []*engine, out *result) {
	var open []*engine
	for _, e := range engines {
		kept := e.ends[:0]
		for _, end := range e.ends {
			if end > now {
				kept = append(kept, end)
			}
		}
		e.ends = kept
		if e.inUse && e.ready(now, n.start) {
			open = append(open, e)
		} else {
			out.idle++
		}
	}
	if len(open) == 0 {
		out.down++
	}
	for range int(n.rate) {
		takes := 1 + r.IntN(n.longest)
		if len(open) == 0 {
			out.refused++
			continue
		}
		e := open[r.IntN(len(open))]
		e.ends = append(e.ends, now+takes)
	}
}

// run is one start of the script, which nothing keeps from the others.
type run struct {
	step, wake int
	old, new   int
}

// script lives through the night with the script: sixty starts, no lock. It
// knows the two engines by whether they run, swaps their roles at each start,
// and waits without end. The model is kind to it: its drain sees every request
// and comes to an end, and no client keeps a connection to a disabled engine.
func script(n night) result {
	var out result
	r := rand.New(rand.NewPCG(n.seed, 0))
	engines := []*engine{{running: true, since: -n.start, inUse: true}, {}}
	var runs []*run
	for now := range horizon {
		if now%60 == 0 && now < 3600 {
			runs = append(runs, &run{wake: now})
		}
		for _, x := range runs {
			x.advance(n, now, engines, &out)
		}
		requests(n, r, now, engines, &out)
	}
	return out
}

// advance takes one start of the script as far as it gets in this second.
func (x *run) advance(n night, now int, engines []*engine, out *result) {
	if now < x.wake {
		return
	}
	switch x.step {
	case 0: // who is old, and the other one up
		x.old, x.new = 0, 1
		if !engines[0].running {
			x.old, x.new = 1, 0
		}
		if e := engines[x.new]; !e.running {
			e.running, e.since = true, now
			out.rotations++
		}
		x.step = 1
	case 1: // until the new one is healthy
		if !engines[x.new].ready(now, n.start) {
			x.wake = now + 5
			return
		}
		engines[x.new].inUse = true
		x.step, x.wake = 2, now+2
	case 2:
		engines[x.old].inUse = false
		x.step = 3
	case 3: // until the old one says that it has none; one that is away says nothing
		if e := engines[x.old]; !e.ready(now, n.start) || len(e.ends) > 0 {
			x.wake = now + 5
			return
		}
		engines[x.old].stop(out)
		x.step = 4
	}
}

// ours lives through the night with core.Next: both engines serve, and take
// their turns one after the other, asked for at 03:00.
func ours(n night) result {
	var out result
	r := rand.New(rand.NewPCG(n.seed, 0))
	engines := []*engine{{running: true, since: -n.start, inUse: true}, {running: true, since: -n.start, inUse: true}}
	begin := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	d := core.Desired{Parallel: 1, Pools: []core.Pool{{
		Name: "p", Workers: []core.Spec{{Name: "1", Hash: "h"}, {Name: "2", Hash: "h"}}, MinReady: 1,
		Drain: 10 * time.Minute, Ready: 15 * time.Minute, Grace: time.Minute,
	}}, Intent: core.Intent{Workers: map[string]core.Worker{
		"p/1": {Phase: core.Ready, Generation: 1, Hash: "h", Good: "h"}, "p/2": {Phase: core.Ready, Generation: 1, Hash: "h", Good: "h"},
	}, Rotations: map[string]core.Rotation{}, Pools: map[string]core.PoolRecord{}}}
	generations := []uint64{1, 1}
	for now := range horizon {
		at := begin.Add(time.Duration(now) * time.Second)
		if now == 0 {
			if next, err := core.Rotate(d, "p", nil, at); err == nil {
				d.Intent = next
			}
		}
		o := core.Observed{Wall: at, Lease: at.Add(time.Minute), Doors: 1, Workers: map[string]core.Seen{}}
		for i, e := range engines {
			seen := core.Seen{Process: core.Absent, Released: true, Acked: true, Reached: true, Free: -1, Generation: generations[i], Hash: "h"}
			if e.running {
				seen.Process, seen.InFlight = core.Alive, len(e.ends)
				seen.Healthy = e.ready(now, n.start)
				seen.Warmed = seen.Healthy
			}
			o.Workers[fmt.Sprint("p/", i+1)] = seen
		}
		decision := core.Next(d, o, at)
		d.Intent = decision.Intent
		for _, a := range decision.Actions {
			i := int(a.Worker[2] - '1')
			switch a.Kind {
			case core.Start:
				engines[i].running, engines[i].since, generations[i] = true, now, a.Generation
				out.rotations++
			case core.Stop:
				engines[i].stop(&out)
			}
		}
		for i, e := range engines {
			e.inUse = d.Intent.Workers[fmt.Sprint("p/", i+1)].Phase == core.Ready
		}
		requests(n, r, now, engines, &out)
	}
	return out
}

package fitted

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"roundhouse/balancer/sim"
)

// Mixed is n requests of mixed lengths which load a worker to a share of what it does
// with all of them at once, in simulation.
func Mixed(speed *sim.Speed, n int, share float64, seed uint64) []sim.Job {
	rng := rand.New(rand.NewPCG(seed, 9))
	jobs := make([]sim.Job, n)
	for i := range jobs {
		j := &jobs[i]
		j.Prompt, j.Output = 50+rng.IntN(400), 20+rng.IntN(130)
		if rng.IntN(6) == 0 {
			j.Prompt = 600 + rng.IntN(1000)
		}
		j.Output = max(2, min(j.Output, speed.Longest/2))
		j.Prompt = max(1, min(j.Prompt, speed.Longest-j.Output))
	}
	each := simulate(*speed, jobs).seconds / float64(n) / share
	at := 0.0
	for i := range jobs {
		at += rng.ExpFloat64() * each
		jobs[i].At = at
	}
	return jobs
}

// Played is traffic, and what became of it on a worker: seconds of each request.
type Played struct {
	Jobs             []sim.Job
	TTFT, TPOT, E2EL []float64
	seconds          float64 // until the last answer, of what was simulated
}

// Play plays traffic on the worker.
func (m *Meter) Play(ctx context.Context, jobs []sim.Job) (Played, error) {
	p := Played{Jobs: jobs}
	streams := make([]*stream, len(jobs))
	prompts := make([][]int, len(jobs))
	for i, j := range jobs {
		prompts[i] = m.prompt(j.Prompt)
	}
	began := time.Now()
	for i, j := range jobs {
		time.Sleep(time.Until(began.Add(time.Duration(j.At * float64(time.Second)))))
		streams[i] = m.w.ask(ctx, prompts[i], j.Output)
	}
	var errs []error
	for i, s := range streams {
		first := <-s.first
		<-s.ended
		errs = append(errs, s.err)
		p.TTFT, p.E2EL = append(p.TTFT, first.Sub(s.sent).Seconds()), append(p.E2EL, s.last.Sub(s.sent).Seconds())
		p.TPOT = append(p.TPOT, s.last.Sub(first).Seconds()/float64(jobs[i].Output-1))
	}
	return p, errors.Join(errs...)
}

// Comparison is traffic on a worker beside the same on the simulated engine.
type Comparison struct {
	Requests        int
	Real, Simulated sim.Outcome
}

// Compare simulates what was played, each piece alone, and puts all pieces together.
func Compare(speed sim.Speed, pieces ...Played) (c Comparison) {
	var real, simulated Played
	for _, p := range pieces {
		c.Requests += len(p.Jobs)
		real.add(p)
		simulated.add(simulate(speed, p.Jobs))
	}
	for from, into := range map[*Played]*sim.Outcome{&real: &c.Real, &simulated: &c.Simulated} {
		into.TTFT, into.TPOT, into.E2EL = sim.SpreadOf(from.TTFT), sim.SpreadOf(from.TPOT), sim.SpreadOf(from.E2EL)
	}
	return c
}

func (p *Played) add(q Played) {
	p.TTFT, p.TPOT, p.E2EL = append(p.TTFT, q.TTFT...), append(p.TPOT, q.TPOT...), append(p.E2EL, q.E2EL...)
}

func simulate(speed sim.Speed, jobs []sim.Job) (p Played) {
	o := sim.Run(&sim.Scenario{Workers: []sim.Speed{speed}, Stale: 0.25, Jobs: jobs, Told: func(t sim.Times) {
		p.TTFT, p.E2EL = append(p.TTFT, t.TTFT), append(p.E2EL, t.E2EL)
		if t.TPOT > 0 {
			p.TPOT = append(p.TPOT, t.TPOT)
		}
	}}, sim.Policies()[0](), 1)
	p.seconds = o.Seconds
	return p
}

package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Peer is the engine on which routers are compared in real time: prompts as they come,
// 20 000 of their tokens a second besides what a step takes, and some forty tokens a
// second of one stream.
var Peer = Speed{Base: 0.020, PerPrefill: 1.0 / 20000, PerDecode: 0.0003, Budget: 2048, Capacity: 1 << 20, Longest: 8000, InOrder: true}

// peers is how many engines a cell has.
const peers = 4

// Cell is one row of the comparison of routers: a traffic on a fleet in which one
// resource is the first to run out, at a share of what the fleet can sustain.
type Cell struct {
	Traffic string  // TrafficNames has those that need no file; else the path of a trace
	Bound   string  // one of Bounds
	Share   float64 // of the knee
	Age     float64 // seconds for which the engines' metrics stay what they were
	Slow    bool    // one engine takes three times as long
	Joins   bool    // one engine joins when a third of the time is over
}

// TrafficNames are the traffics that are made up.
var TrafficNames = []string{"long-short", "reasoning", "prefixes", "sessions", "bursts"}

// Bounds are what may run out first. With "both" prompts and KV run out together, and no
// prompt begins like another.
var Bounds = []string{"prompts", "kv", "seats", "both"}

// String names a cell as -cells takes it.
func (c Cell) String() string {
	traffic := c.Traffic[strings.LastIndexByte(c.Traffic, '/')+1:]
	traffic, _, _ = strings.Cut(traffic, ".")
	s := fmt.Sprintf("%s/%s/%g/%gs", traffic, c.Bound, c.Share, c.Age)
	if c.Slow {
		s += "/slow"
	}
	if c.Joins {
		s += "/joins"
	}
	return s
}

// Scenario draws a cell's traffic for so many seconds.
func (c Cell) Scenario(seconds float64, seed uint64) (Scenario, error) {
	pattern, err := c.draw(4000, seed)
	if err != nil {
		return Scenario{}, err
	}
	if c.Bound == "both" {
		for i := range pattern {
			pattern[i].Blocks, pattern[i].shared = nil, 0
		}
	}
	speed := c.bind(Peer, pattern)
	rate := c.Share * peers * sustained(speed, pattern)
	s := Scenario{Name: c.String(), Stale: 0.25, Old: c.Age, From: seconds / 4}
	for i := range peers {
		w := speed
		if c.Slow && i == peers-1 {
			w = speed.slower(3)
			rate *= (peers - 2.0/3) / peers
		}
		s.Workers = append(s.Workers, w)
	}
	if c.Joins {
		s.Joins = map[int]float64{peers - 1: seconds / 3}
		rate *= (peers - 1.0) / peers
	}
	n := min(int(rate*seconds), len(pattern))
	s.Jobs = pattern[:n]
	stretch := seconds / s.Jobs[n-1].At
	for i := range s.Jobs {
		s.Jobs[i].At *= stretch
	}
	return s, nil
}

// draw returns n jobs; only the proportions of their times mean something.
func (c Cell) draw(n int, seed uint64) ([]Job, error) {
	g := generator{rng: rand.New(rand.NewPCG(seed, 11)), speed: Peer, n: n}
	switch c.Traffic {
	case "long-short":
		return g.poisson(1, g.chats), nil
	case "prefixes":
		return g.poisson(1, func(j *Job) { g.prefixes(j); j.Output = 10 + g.rng.IntN(80) }), nil
	case "reasoning":
		return g.poisson(1, func(j *Job) { j.Prompt, j.Output = 50+g.rng.IntN(500), 100+g.rng.IntN(300) }), nil
	case "sessions":
		return g.poisson(1, g.sessions()), nil
	case "bursts":
		jobs := g.poisson(1, g.chats)
		for i := range jobs {
			jobs[i].At = jobs[i-i%32].At
		}
		return jobs, nil
	}
	s, err := Trace(c.Traffic, []Speed{Peer}, 1, 0)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(c.Traffic, ".jsonl") {
		quarter(s.Jobs)
	}
	// Each seed plays another part of the trace.
	at := g.rng.IntN(max(1, len(s.Jobs)-n))
	jobs := s.Jobs[at:min(at+n, len(s.Jobs))]
	began := jobs[0].At
	for i := range jobs {
		jobs[i].At -= began
		jobs[i].Output = min(jobs[i].Output, 300)
	}
	return jobs, nil
}

// quarter makes a trace of long documents one of a quarter of their lengths: fleets of
// a few engines answer enough of them in half a minute.
func quarter(jobs []Job) {
	for i := range jobs {
		j := &jobs[i]
		j.Prompt, j.Output = max(1, j.Prompt/4), max(1, j.Output/4)
		kept := j.Blocks[:0]
		for k := 3; k < len(j.Blocks); k += 4 {
			kept = append(kept, j.Blocks[k])
		}
		j.Blocks = kept[:min(len(kept), j.Prompt/blockTokens)]
	}
}

// chats draws chats, of which one in seven has a long prompt and one in ten a long
// answer. No answer takes a large part of a cell's time.
func (g *generator) chats(j *Job) {
	j.Prompt, j.Output = 100+g.rng.IntN(900), 10+g.rng.IntN(80)
	if g.rng.Float64() < 0.15 {
		j.Prompt = g.speed.Longest/4 + g.rng.IntN(g.speed.Longest*3/4)
	}
	if g.rng.Float64() < 0.1 {
		j.Output = 150 + g.rng.IntN(150)
	}
}

// sessions draws turns of conversations: each begins with all that was said before.
func (g *generator) sessions() func(*Job) {
	type talk struct {
		id   uint64
		said int
	}
	var open []talk
	next := uint64(1)
	return func(j *Job) {
		if len(open) < 200 || g.rng.Float64() < 0.1 {
			open = append(open, talk{id: next})
			next++
		}
		k := g.rng.IntN(len(open))
		t := &open[k]
		j.Prompt, j.Output = t.said+100+g.rng.IntN(600), 10+g.rng.IntN(80)
		j.Key = int(t.id)
		for b := range j.Prompt / blockTokens {
			j.Blocks = append(j.Blocks, oneBlock(t.id<<20|uint64(b)))
		}
		j.shared = t.said / blockTokens * blockTokens
		if t.said = j.Prompt + j.Output; t.said > g.speed.Longest-1000 {
			open = slices.Delete(open, k, k+1)
		}
	}
}

// bind returns the speed with as little of the cell's resource that an engine sustains
// seven tenths of what its prompts alone would allow; of "both", nine tenths.
func (c Cell) bind(s Speed, jobs []Job) Speed {
	free := sustained(s, jobs)
	longest := 0
	for i := range jobs {
		longest = max(longest, jobs[i].Prompt+jobs[i].Output)
	}
	low, high, part := longest+longest/4, s.Capacity, 0.7
	set := func(n int) { s.Capacity = n }
	switch c.Bound {
	case "prompts":
		return s
	case "both":
		part = 0.9
	case "seats":
		low, high = 1, usualSeats
		set = func(n int) { s.Seats = n }
	}
	for high-low > max(1, low/20) {
		mid := (low + high) / 2
		if set(mid); sustained(s, jobs) < part*free {
			low = mid
		} else {
			high = mid
		}
	}
	set(high)
	return s
}

// sustained is how many of these jobs a second an engine ends that always has enough
// of them.
func sustained(s Speed, jobs []Job) float64 {
	e := newComputer(s)
	const n = 1200
	for i := range n {
		j := jobs[i*peers%len(jobs)]
		e.add(&j, 0)
	}
	now, done, from, began := 0.0, 0, 0, 0.0
	for done < n*8/10 { // at the beginning nobody ends, and the last ones have an engine to themselves
		now = e.step(now)
		_, finished := e.ended()
		if done += len(finished); from == 0 && done >= n*4/10 {
			from, began = done, now
		}
	}
	return float64(done-from) / (now - began)
}

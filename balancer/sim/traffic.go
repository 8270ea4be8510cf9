package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"time"

	"roundhouse/measure/data"
)

// fleetSize is how many workers a made-up traffic is played on.
const fleetSize = 8

// Scenarios returns the made-up traffics on workers of one speed. Each loads
// its fleet to a share of what it computes, so that they mean the same on any.
func Scenarios(speed Speed, seed uint64, scale float64) []Scenario {
	same := SameSpeed(fleetSize, speed)
	slow := append([]Speed(nil), same...)
	slow[3] = speed.slower(3)
	g := generator{rng: rand.New(rand.NewPCG(seed, 7)), speed: speed, n: int(3000 * scale)}
	return []Scenario{
		{Name: "bursts of 64", Workers: same, Stale: 0.25, Jobs: g.bursts(0.5)},
		{Name: "long and short", Workers: same, Stale: 0.25, Jobs: g.poisson(0.95, g.longShort)},
		{Name: "shared prefixes", Workers: same, Stale: 0.25, Jobs: g.poisson(0.6, g.prefixes)},
		{Name: "one slow worker", Workers: slow, Stale: 0.25, Jobs: g.poisson(0.75, g.longShort)},
		{Name: "metrics at once", Workers: same, Stale: 0, Jobs: g.poisson(0.9, g.longShort)},
		{Name: "metrics 1 s old", Workers: same, Stale: 1, Jobs: g.poisson(0.9, g.longShort)},
		{Name: "metrics 5 s old", Workers: same, Stale: 5, Jobs: g.poisson(0.9, g.longShort)},
		{Name: "one joins cold", Workers: same, Stale: 0.25, Joins: map[int]float64{5: 30}, Jobs: g.poisson(0.5, g.prefixes)},
	}
}

// SameSpeed are n workers of one speed.
func SameSpeed(n int, speed Speed) []Speed {
	all := make([]Speed, n)
	for i := range all {
		all[i] = speed
	}
	return all
}

// generator draws traffic for workers of one speed.
type generator struct {
	rng   *rand.Rand
	speed Speed
	n     int
}

// poisson draws jobs that arrive at random and load the fleet to a share.
func (g *generator) poisson(share float64, draw func(*Job)) []Job {
	jobs := make([]Job, g.n)
	work := 0.0
	for i := range jobs {
		draw(&jobs[i])
		work += g.speed.Work(&jobs[i])
	}
	t := 0.0
	for i := range jobs {
		t += g.rng.ExpFloat64() * work / float64(g.n) / fleetSize / share
		jobs[i].At = t
	}
	return jobs
}

// longShort draws chats, of which one in seven is long for what a worker takes
// and one in ten gets a long answer.
func (g *generator) longShort(j *Job) {
	long := min(g.speed.Longest, 24000)
	j.Prompt, j.Output = 100+g.rng.IntN(900), 20+g.rng.IntN(300)
	if g.rng.Float64() < 0.15 {
		j.Prompt = long/3 + g.rng.IntN(long*2/3)
	}
	if g.rng.Float64() < 0.1 {
		j.Output = 1000 + g.rng.IntN(1000)
	}
}

// prefixes draws one of 40 shared prompts of 3 to 12 blocks, as far as a worker
// takes them, and a question.
func (g *generator) prefixes(j *Job) {
	which := int(math.Floor(40 * g.rng.Float64() * g.rng.Float64()))
	blocks := min(3+which%10, (g.speed.Longest-450)/blockTokens)
	for b := range blocks {
		j.Blocks = append(j.Blocks, oneBlock(uint64(which+1)<<20|uint64(b)))
	}
	j.Prompt, j.Output = blocks*blockTokens+50+g.rng.IntN(400), 50+g.rng.IntN(300)
	j.shared = blocks * blockTokens
}

// bursts draws 64 jobs at once, again and again.
func (g *generator) bursts(share float64) []Job {
	jobs := g.poisson(share, g.longShort)
	every := jobs[len(jobs)-1].At / float64(len(jobs)) * 64
	for i := range jobs {
		jobs[i].At = float64(i/64) * every
		jobs[i].Prompt = min(jobs[i].Prompt, 6000)
	}
	return jobs
}

// Trace reads recorded traffic, Azure's CSV or Mooncake's JSON lines, at most limit
// requests of it (0: all), for workers of the given speeds. speedup divides the times
// between arrivals.
func Trace(path string, workers []Speed, speedup float64, limit int) (Scenario, error) {
	rows, err := data.ReadTrace(path, time.Millisecond)
	if err != nil {
		return Scenario{}, err
	}
	if limit > 0 {
		rows = rows[:min(limit, len(rows))]
	}
	if len(rows) == 0 {
		return Scenario{}, fmt.Errorf("%s: there is no request in it", path)
	}
	jobs := make([]Job, len(rows))
	for i, row := range rows {
		j := Job{At: row.At.Seconds() / speedup, Prompt: min(row.Input, workers[0].Longest), Output: row.Output}
		// Equal ids are equal prefixes; the last block of a prompt is not full.
		for _, id := range row.Blocks[:min(len(row.Blocks), j.Prompt/blockTokens)] {
			j.Blocks = append(j.Blocks, oneBlock(id))
		}
		jobs[i] = j
	}
	return Scenario{Name: filepath.Base(path), Workers: workers, Stale: 0.25, Jobs: jobs}, nil
}

// Fit returns by how much a trace must be sped up to load its fleet to the
// share of what it could compute, prefixes left out.
func (s *Scenario) Fit(share float64) float64 {
	work := 0.0
	for i := range s.Jobs {
		j := &s.Jobs[i]
		work += s.Workers[0].Work(j)
	}
	return s.Jobs[len(s.Jobs)-1].At * float64(len(s.Workers)) * share / work
}

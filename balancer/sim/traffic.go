package sim

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"
)

// fleetSize is how many workers a made-up traffic is played on.
const fleetSize = 8

// Scenarios returns the made-up traffics on workers of one speed. Each loads
// its fleet to a share of what it computes, so that they mean the same on any.
func Scenarios(speed Speed, seed uint64, scale float64) []Scenario {
	same := make([]Speed, fleetSize)
	for i := range same {
		same[i] = speed
	}
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

// Trace reads recorded traffic: Azure's CSV or Mooncake's JSON lines. speedup
// divides the times between arrivals.
func Trace(path string, speed Speed, speedup float64, limit int) (Scenario, error) {
	file, err := os.Open(path)
	if err != nil {
		return Scenario{}, err
	}
	defer file.Close()
	var jobs []Job
	if strings.HasSuffix(path, ".csv") {
		jobs, err = readCSV(csv.NewReader(file), limit)
	} else {
		jobs, err = readLines(bufio.NewScanner(file), limit)
	}
	if err != nil {
		return Scenario{}, fmt.Errorf("%s: %w", path, err)
	}
	workers := make([]Speed, fleetSize)
	for i := range workers {
		workers[i] = speed
	}
	for i := range jobs {
		jobs[i].At /= speedup
		jobs[i].Prompt = min(jobs[i].Prompt, speed.Longest)
		jobs[i].Blocks = jobs[i].Blocks[:min(len(jobs[i].Blocks), jobs[i].Prompt/blockTokens)]
	}
	return Scenario{Name: path[strings.LastIndexByte(path, '/')+1:], Workers: workers, Stale: 0.25, Jobs: jobs}, nil
}

func readCSV(r *csv.Reader, limit int) (jobs []Job, err error) {
	rows, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	var began time.Time
	for i, row := range rows[1:] {
		at, err := time.Parse("2006-01-02 15:04:05", row[0])
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+2, err)
		}
		if i == 0 {
			began = at
		}
		prompt, err := strconv.Atoi(row[1])
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+2, err)
		}
		output, err := strconv.Atoi(row[2])
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+2, err)
		}
		jobs = append(jobs, Job{At: at.Sub(began).Seconds(), Prompt: max(1, prompt), Output: max(1, output)})
		if len(jobs) == limit {
			break
		}
	}
	return jobs, nil
}

func readLines(sc *bufio.Scanner, limit int) (jobs []Job, err error) {
	sc.Buffer(nil, 1<<20)
	for sc.Scan() && len(jobs) != limit {
		var l struct {
			At     float64  `json:"timestamp"`
			Prompt int      `json:"input_length"`
			Output int      `json:"output_length"`
			Hashes []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(jobs)+1, err)
		}
		// Equal ids are equal prefixes; the last block of a prompt is not full.
		for i, id := range l.Hashes {
			l.Hashes[i] = oneBlock(id)
		}
		jobs = append(jobs, Job{At: l.At / 1000, Prompt: max(1, l.Prompt), Output: max(1, l.Output), Blocks: l.Hashes[:l.Prompt/blockTokens]})
	}
	return jobs, sc.Err()
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

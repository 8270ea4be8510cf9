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

// Scenarios returns the made-up traffics, on eight workers each.
func Scenarios(seed uint64, scale float64) []Scenario {
	same := make([]Speed, 8)
	for i := range same {
		same[i] = DefaultSpeed
	}
	slow := append([]Speed(nil), same...)
	slow[3].Base, slow[3].PerPrefill, slow[3].PerDecode = 3*slow[3].Base, 3*slow[3].PerPrefill, 3*slow[3].PerDecode
	n := int(3000 * scale)
	rng := rand.New(rand.NewPCG(seed, 7))
	mixed := func(rate float64) []Job { return poisson(rng, n, rate, longShort) }
	return []Scenario{
		{Name: "bursts of 64", Workers: same, Stale: 0.25, Jobs: bursts(rng, n)},
		{Name: "long and short", Workers: same, Stale: 0.25, Jobs: mixed(24)},
		{Name: "shared prefixes", Workers: same, Stale: 0.25, Jobs: poisson(rng, n, 22, prefixes)},
		{Name: "one slow worker", Workers: slow, Stale: 0.25, Jobs: mixed(18)},
		{Name: "metrics at once", Workers: same, Stale: 0, Jobs: mixed(22)},
		{Name: "metrics 1 s old", Workers: same, Stale: 1, Jobs: mixed(22)},
		{Name: "metrics 5 s old", Workers: same, Stale: 5, Jobs: mixed(22)},
		{Name: "one joins cold", Workers: same, Stale: 0.25, Joins: map[int]float64{5: 30}, Jobs: poisson(rng, n, 20, prefixes)},
	}
}

func poisson(rng *rand.Rand, n int, rate float64, draw func(*rand.Rand, *Job)) []Job {
	jobs := make([]Job, n)
	t := 0.0
	for i := range jobs {
		t += rng.ExpFloat64() / rate
		jobs[i].At = t
		draw(rng, &jobs[i])
	}
	return jobs
}

func longShort(rng *rand.Rand, j *Job) {
	j.Prompt, j.Output = 100+rng.IntN(900), 20+rng.IntN(300)
	if rng.Float64() < 0.15 {
		j.Prompt = 8000 + rng.IntN(16000)
	}
	if rng.Float64() < 0.1 {
		j.Output = 1000 + rng.IntN(1000)
	}
}

// prefixes draws one of 40 shared prompts of 3 to 12 blocks and a question.
func prefixes(rng *rand.Rand, j *Job) {
	which := int(math.Floor(40 * rng.Float64() * rng.Float64()))
	blocks := 3 + which%10
	for b := range blocks {
		j.Blocks = append(j.Blocks, uint64(which+1)<<20|uint64(b))
	}
	j.Prompt, j.Output = blocks*blockTokens+50+rng.IntN(400), 50+rng.IntN(300)
}

func bursts(rng *rand.Rand, n int) []Job {
	jobs := make([]Job, n)
	for i := range jobs {
		jobs[i].At = float64(i/64) * 3.5
		longShort(rng, &jobs[i])
		jobs[i].Prompt = min(jobs[i].Prompt, 6000)
	}
	return jobs
}

// Trace reads recorded traffic: Azure's CSV or Mooncake's JSON lines. speedup
// divides the times between arrivals.
func Trace(path string, speedup float64, limit int) (Scenario, error) {
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
	workers := make([]Speed, 8)
	for i := range workers {
		workers[i] = DefaultSpeed
	}
	for i := range jobs {
		jobs[i].At /= speedup
		jobs[i].Prompt = min(jobs[i].Prompt, DefaultSpeed.Capacity/2)
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
		work += float64(j.Prompt)*DefaultSpeed.PerPrefill + float64(j.Output)*(DefaultSpeed.Base/16+DefaultSpeed.PerDecode)
	}
	return s.Jobs[len(s.Jobs)-1].At * float64(len(s.Workers)) * share / work
}

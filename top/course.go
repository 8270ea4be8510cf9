package top

import (
	"maps"
	"math"
	"slices"
	"strings"

	"roundhouse/live"
)

// keptPoints is how many samples are at hand: two minutes, for one comes each 5 s.
const keptPoints = 24

// Course is how figures went, by their names: the oldest value first, NaN where it was not
// known.
type Course map[string][]float64

// The names of what is kept: of all pools together, of a pool, of a worker.
const (
	allTokens  = "tokens"
	allWaiting = "waiting"
)

func tokensOf(pool string) string { return "tokens of " + pool }
func cacheOf(id string) string    { return "cache of " + id }

// add takes a sample, and how full each worker is when it comes.
func (c *Course) add(m *live.Sample, workers []worker) {
	next := Course{}
	put := func(key string, v *float64) {
		value := math.NaN()
		if v != nil {
			value = *v
		}
		list := append((*c)[key], value)
		next[key] = list[max(0, len(list)-keptPoints):]
	}
	for _, p := range m.Series {
		switch {
		case p.Worker != nil:
		case p.Name == "tokens_per_second" && p.Pool == nil:
			put(allTokens, p.Value)
		case p.Name == "tokens_per_second":
			put(tokensOf(*p.Pool), p.Value)
		case p.Name == "waiting" && p.Pool == nil:
			put(allWaiting, p.Value)
		}
	}
	for i := range workers {
		put(cacheOf(workers[i].ID), workers[i].KV.Usage)
	}
	*c = next // what is no more is forgotten
}

func (c Course) copy() Course {
	out := maps.Clone(c)
	for k := range out {
		out[k] = slices.Clone(out[k])
	}
	return out
}

// The heights of a line, the least first.
var (
	heights      = []rune("▁▂▃▄▅▆▇█")
	plainHeights = []rune("_.-:=+*#")
)

// spark draws the last values beside the most of them, or beside top where that is known.
func (s *Screen) spark(key string, top float64, wide int) string {
	values := s.House.Course[key]
	values = values[max(0, len(values)-wide):]
	for _, v := range values {
		if v > top {
			top = v
		}
	}
	signs := heights
	if s.ASCII {
		signs = plainHeights
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", wide-len(values)))
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case top == 0:
			b.WriteRune(signs[0])
		default:
			b.WriteRune(signs[min(len(signs)-1, int(v/top*float64(len(signs))))])
		}
	}
	return b.String()
}

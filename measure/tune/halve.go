package tune

import (
	"cmp"
	"slices"
)

// Score is what settings made of some traffic.
type Score struct {
	Goodput    float64 `json:"goodput"`                  // answers a second that meet the goal
	Throughput float64 `json:"output_tokens_per_second"` // which decides among those of equal goodput
}

// equal is how near two figures are that count as one: simulation does not tell them
// apart, and fewer changes are better than a hundredth.
const equal = 0.01

// prefer orders settings: goodput, then tokens a second, then fewer changes.
func prefer(present Settings, a, b Settings, x, y Score) int {
	near := func(p, q float64) bool { return max(p, q)-min(p, q) <= equal*max(p, q) }
	switch {
	case !near(x.Goodput, y.Goodput):
		return cmp.Compare(y.Goodput, x.Goodput)
	case !near(x.Throughput, y.Throughput):
		return cmp.Compare(y.Throughput, x.Throughput)
	}
	return cmp.Or(cmp.Compare(a.changes(present), b.changes(present)), cmp.Compare(a.Seqs, b.Seqs), cmp.Compare(a.Tokens, b.Tokens))
}

// Played is settings with what the simulation made of all the traffic.
type Played struct {
	Settings Settings `json:"settings"`
	Score    Score    `json:"simulated"`
}

// Halve plays an eighth of the traffic on all settings, twice as much on the better half
// of them, and so on, and returns the best few of those that saw all of it. The first
// settings are the present ones; they are not among the best unless they earn it.
func Halve(all []Settings, few int, play func(s Settings, share float64) Score) []Played {
	present := all[0]
	left := slices.Clone(all)
	var played []Played
	for share := 1.0 / 8; ; share *= 2 {
		played = played[:0]
		for _, s := range left {
			played = append(played, Played{s, play(s, share)})
		}
		sortPlayed(present, played)
		if share >= 1 {
			return slices.Clone(played[:min(few, len(played))])
		}
		left = left[:0]
		for _, p := range played[:max(min(few, len(played)), (len(played)+1)/2)] {
			left = append(left, p.Settings)
		}
	}
}

// sortPlayed puts the best first. Nearness is no order (a is near b and b near c, while a
// is not near c), so that settings are taken one by one: each time the first that no other
// one is better than.
func sortPlayed(present Settings, list []Played) {
	for i := range list {
		best := i
		for j := i + 1; j < len(list); j++ {
			if prefer(present, list[j].Settings, list[best].Settings, list[j].Score, list[best].Score) < 0 {
				best = j
			}
		}
		list[i], list[best] = list[best], list[i]
	}
}

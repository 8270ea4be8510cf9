package tune

import (
	"fmt"
	"math"
	"slices"

	"roundhouse/measure/stat"
)

// Least is the share by which settings must be better, at the lower bound of the
// interval, to be proposed.
const Least = 0.03

// Turns measures several settings in turns, ABCABC: what the machine does meanwhile falls
// on all of them. It returns the scores of each.
func Turns(list []Settings, rounds int, measure func(round int, s Settings) (Score, error)) ([][]Score, error) {
	scores := make([][]Score, len(list))
	for round := range rounds {
		for i, s := range list {
			x, err := measure(round, s)
			if err != nil {
				return scores, fmt.Errorf("%s: %w", s, err)
			}
			scores[i] = append(scores[i], x)
		}
	}
	return scores, nil
}

// Gain is by what share one figure is above another, with its 95 % interval.
type Gain struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

func (g Gain) String() string {
	return fmt.Sprintf("%+.1f %% (%+.1f to %+.1f)", 100*g.Mean, 100*g.Low, 100*g.High)
}

// gain compares by pairs: a crowded machine makes both sides of a round slower by a factor,
// so the ratios of the rounds are what is averaged (their logarithms, by Student's t). Where
// a round has none of something there is no ratio, and the differences are.
func gain(present, other []float64) (Gain, bool) {
	if len(present) > 0 && slices.Min(present) > 0 && slices.Min(other) > 0 {
		ratios := make([]float64, len(present))
		for i := range present {
			ratios[i] = math.Log(other[i] / present[i])
		}
		in, ok := stat.MeanInterval(ratios)
		share := func(log float64) float64 { return math.Min(math.Expm1(log), beyond(1)) }
		return Gain{share(stat.Mean(ratios)), share(in.Low), share(in.High)}, ok
	}
	base := stat.Mean(present)
	difference := make([]float64, len(present))
	for i := range present {
		difference[i] = other[i] - present[i]
	}
	in, ok := stat.MeanInterval(difference)
	if !ok {
		return Gain{}, false
	}
	if base <= 0 { // nothing was good: whatever surely is, is a gain beyond any share
		return Gain{beyond(stat.Mean(difference)), beyond(in.Low), beyond(in.High)}, true
	}
	return Gain{stat.Mean(difference) / base, in.Low / base, in.High / base}, true
}

// beyond is the share by which a figure is above none: 1000 times, as much below, or 0.
func beyond(x float64) float64 {
	switch {
	case x > 0:
		return 1000
	case x < 0:
		return -1000
	}
	return 0
}

// Judged is settings with what measuring showed.
type Judged struct {
	Settings   Settings `json:"settings"`
	Scores     []Score  `json:"measured"`
	Goodput    Gain     `json:"goodput_gain"`
	Throughput Gain     `json:"throughput_gain"`
	Proposed   bool     `json:"proposed"` // it is surely better by Least: in goodput, or in tokens a second while goodput is no lower
}

// Judge compares measured settings with the present ones, which are the first. It returns
// them and which is the best of those that are surely better by Least; -1: none is.
func Judge(list []Settings, scores [][]Score) (all []Judged, best int) {
	best = -1
	column := func(s []Score, of func(Score) float64) (x []float64) {
		for _, v := range s {
			x = append(x, of(v))
		}
		return x
	}
	goodput, throughput := func(s Score) float64 { return s.Goodput }, func(s Score) float64 { return s.Throughput }
	for i, s := range list {
		j := Judged{Settings: s, Scores: scores[i]}
		if i > 0 {
			g, ok1 := gain(column(scores[0], goodput), column(scores[i], goodput))
			t, ok2 := gain(column(scores[0], throughput), column(scores[i], throughput))
			j.Goodput, j.Throughput = g, t
			j.Proposed = ok1 && ok2 && (g.Low >= Least || g.Mean >= 0 && t.Low >= Least)
		}
		all = append(all, j)
		if j.Proposed && (best < 0 || value(j) > value(all[best])+equal) {
			best = i
		}
	}
	return all, best
}

// value is what settings are compared by: what they surely gain.
func value(j Judged) float64 { return math.Max(j.Goodput.Low, 0) + math.Max(j.Throughput.Low, 0) }

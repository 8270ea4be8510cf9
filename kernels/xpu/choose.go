package xpu

import (
	"math"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// choose samples from the rows that were read back. What most requests ask for,
// the greatest logit of a row, is found here; the rest is the reference's.
func (e *executable) choose(s *kernels.Step, rows [][]float32) []kernels.Choice {
	e.choices = e.choices[:0]
	for i, row := range rows {
		sampling := &s.Sampling[i]
		if sampling.Temperature == 0 && sampling.Edits == nil && sampling.Allowed == nil && sampling.Top == 0 {
			e.choices = append(e.choices, greedy(row, sampling))
		} else {
			e.choices = append(e.choices, ref.Describe(row, sampling))
		}
	}
	return e.choices
}

// greedy is the choice of the greatest logit, ties to the lowest token.
func greedy(row []float32, s *kernels.Sampling) kernels.Choice {
	token, most := 0, row[0]
	for i, v := range row {
		if v > most {
			token, most = i, v
		}
	}
	var sum float64
	for _, v := range row {
		sum += math.Exp(float64(v - most))
	}
	c := kernels.Choice{Token: int32(token), Logit: most, LogSumExp: float32(float64(most) + math.Log(sum)), Rank: 1}
	for _, p := range s.Probe {
		c.Probe = append(c.Probe, row[p])
	}
	return c
}

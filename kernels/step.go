package kernels

import (
	"cmp"
	"math"
	"slices"
)

// Step is everything that changes from one forward pass to the next.
type Step struct {
	Tokens    []int32 // (tokens) ids, sequence after sequence
	Positions []int32 // (tokens)
	Axes      []int32 // (tokens, 3) positions on the axes that RoPE.Axes names; nil: Positions on each
	Types     []int32 // (tokens) segments; nil: zeros
	Seqs      []Seq
	Features  []float32  // (frames, width) what Features reads, sequence after sequence; nil: none
	Media     []float32  // (media rows, width) what Place puts in; nil: none
	MediaRow  []int32    // (tokens) the row of Media that a token stands for, -1: none; nil: none does
	Rows      []int32    // (rows) indexes into Tokens, ascending, whose logits are wanted
	Sampling  []Sampling // (rows) how to choose; nil: no token is chosen

	// WantLogits brings whole rows of logits back in Result.Logits.
	WantLogits bool
}

// Seq is one sequence's part of a step: Count rows from First on.
type Seq struct {
	First   int32
	Count   int32
	Context int32 // tokens of the sequence after this step; the last row's position + 1

	// Blocks is the block table of each KV group: entry i holds tokens
	// [i·BlockTokens, (i+1)·BlockTokens). Blocks behind a sliding window are -1.
	Blocks [][]int32

	// Frames is how many frames the sequence has among the step's features, and
	// Line how many of them are a line of a grid: 0 or 1 for sound.
	Frames, Line int32

	// Adapter is the slot of the adapter that its rows go through, from 1 on; 0
	// is none.
	Adapter int32
}

// Sampling says how one row becomes a token. The order is vLLM's: mask, bias,
// penalties, temperature, min_p, top_k, top_p, then one draw. Logits of -Inf and
// those that are not numbers are not chosen. Where mask and edits leave nothing,
// neither is followed, and the greatest logit is it.
type Sampling struct {
	Temperature float32 // 0: greedy, ties to the lowest id
	TopK        int32   // 0: all
	TopP        float32 // 1: all; 0: the first
	MinP        float32 // 0: all

	// Edits are sparse changes of logits, sorted by token.
	Edits []Edit

	// Allowed has one bit for each token; nil allows all.
	Allowed []uint32

	// Times is the first of the tokens that are times, as all behind it are, where
	// Allowed is set; 0: none is. If their chances together, after mask and
	// edits, are more than each other token's, one of them is chosen.
	Times int32

	// The random number is Philox4x32-10 of these and nothing else.
	Seed     uint64
	Branch   uint32 // which of n
	Position uint32 // of the token among the output

	// Top is how many candidates to bring back, for logprobs (at most 64).
	Top int32
	// Probe lists tokens whose logits are wanted besides.
	Probe []int32
}

// Timed is the candidates that Times leaves; they stand by ascending token.
func (s *Sampling) Timed(all []Candidate) []Candidate {
	at := slices.IndexFunc(all, func(c Candidate) bool { return c.Token >= s.Times })
	if s.Times == 0 || at <= 0 {
		return all
	}
	most := slices.MaxFunc(all[:at], func(a, b Candidate) int { return cmp.Compare(a.Logit, b.Logit) }).Logit
	var sum float64
	for _, c := range all[at:] {
		sum += math.Exp(float64(c.Logit) - float64(most))
	}
	if sum > 1 {
		return all[at:]
	}
	return all
}

// Edit changes one logit x: x = (x > 0 ? x / Repetition : x · Repetition) + Add,
// which stays within ±MostLogit.
type Edit struct {
	Token      int32
	Repetition float32 // 1: none
	Add        float32 // bias - frequency_penalty · count - presence_penalty; -Inf: the token is not to be chosen
}

// MostLogit is the greatest magnitude that an edit gives a logit: so much less
// than float32 has that no temperature makes it infinite.
const MostLogit = 1e30

// Bounds of temperatures other than 0.
const (
	leastTemperature = 1e-5
	mostTemperature  = 1e5
)

// Of edits a logit. NaN becomes -Inf, and -Inf stays so.
func (e *Edit) Of(x float32) float32 {
	least := float32(math.Inf(-1))
	if x == least || e.Add == least {
		return least
	}
	if x > 0 {
		x /= e.Repetition
	} else {
		x *= e.Repetition
	}
	x += e.Add
	if x != x {
		return least
	}
	return max(-MostLogit, min(x, MostLogit))
}

// Result is the outcome of a step on the host.
type Result struct {
	Sampled []Choice    // (rows)
	Logits  [][]float32 // (rows)(vocab), only if wanted: before edits
	Output  [][]float32 // (rows)(width) of an Output operation
}

// Choice is the outcome of one row.
type Choice struct {
	Token     int32       // -1: none of the row's logits is a number; all else says nothing then
	Logit     float32     // of the token, before edits
	LogSumExp float32     // over the row, before edits: logprob = logit - LogSumExp
	Rank      int32       // of the token among the row's logits, from 1
	Top       []Candidate // the greatest logits before edits, descending, ties to the lower id
	Probe     []float32   // logits of Sampling.Probe
}

// Candidate is a token and its logit.
type Candidate struct {
	Token int32
	Logit float32
}

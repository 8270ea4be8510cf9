package tune

import (
	"fmt"
	"math"
	"slices"
)

// Settings are what an engine is started with, by vLLM's names.
type Settings struct {
	Seqs   int `json:"max_num_seqs"`
	Tokens int `json:"max_num_batched_tokens"`
}

func (s Settings) String() string {
	return fmt.Sprintf("--max-num-seqs %d --max-num-batched-tokens %d", s.Seqs, s.Tokens)
}

// changes counts in how many settings two differ.
func (s Settings) changes(t Settings) (n int) {
	if s.Seqs != t.Seqs {
		n++
	}
	if s.Tokens != t.Tokens {
		n++
	}
	return n
}

// Facts are what arithmetic needs of engine and traffic.
type Facts struct {
	Present  Settings
	Capacity int // tokens of the KV cache
	Median   int // tokens of a request, prompt and answer
}

// Refused is a part of the space that was thrown out.
type Refused struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// The bounds of what is tried.
const (
	leastSeqs, mostSeqs     = 8, 1024
	leastTokens, mostTokens = 512, 16_384
)

// Space returns the settings that can be: seats by steps of √2, tokens of a step by
// steps of 2, the present ones first.
func Space(f Facts) (all []Settings, refused []Refused) {
	all = []Settings{f.Present}
	held := mostSeqs
	if f.Median > 0 {
		held = max(1, f.Capacity/f.Median)
	}
	dropped := 0
	for i := 0; ; i++ {
		seqs := int(math.Round(leastSeqs * math.Pow(math.Sqrt2, float64(i))))
		if seqs > mostSeqs {
			break
		}
		if seqs > held {
			dropped++
			continue
		}
		for tokens := leastTokens; tokens <= mostTokens; tokens *= 2 {
			s := Settings{seqs, tokens}
			if seqs <= tokens && !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	if dropped > 0 {
		refused = append(refused, Refused{fmt.Sprintf("--max-num-seqs above %d", held), fmt.Sprintf("the KV cache holds %d tokens, that many requests of %d (the median); more would be preempted", f.Capacity, f.Median)})
	}
	return all, refused
}

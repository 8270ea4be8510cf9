package worker

import "roundhouse/worker/kv"

// Sequence is one stretch of text in the making: a prompt and what was
// generated after it. A request with n choices has n sequences.
//
// The engine's goroutine owns it.
type Sequence struct {
	Prompt   int     // how many of Tokens are the prompt
	Tokens   []int32 // prompt, then output
	Computed int     // tokens whose keys and values lie in the cache
	Cached   int     // prompt tokens that the prefix cache covered when the sequence first ran; -1 before
	Priority int     // lower goes first

	// NoLookup keeps the prefix cache out: prompt logprobs need every position
	// to be computed.
	NoLookup bool
	// PromptRows asks for a row of logits at every prompt position.
	PromptRows bool

	// Parent, while it lives, is the first choice of the same request; its
	// prompt blocks are shared once they are computed.
	Parent *Sequence

	// Drafts are guesses of what follows Tokens, to be verified in one step.
	Drafts  []int32
	guesser *guesser // nil: none were made yet

	Table kv.Table

	places []int32 // (prompt, 3) positions on three axes; nil: they are the index
	shift  int     // of positions behind the prompt, against the index

	request *request // nil in scheduler tests
	choice  int
	adapter int32 // its slot, from 1 on; 0: none
	rules   *rules
	fault   error // of its guide; ends the request

	order   uint64 // of arrival
	arrived uint64 // step of arrival, for ageing
	waited  uint64 // steps that were computed while it waited to come here
	state   seqState
	rows    int  // the last prompt position whose logits have come back
	counted bool // among the prompt tokens of the statistics
}

type seqState uint8

const (
	seqNew seqState = iota
	seqWaiting
	seqRunning
	seqGone
)

// placeOf is the positions of a token on three axes.
func (q *Sequence) placeOf(token int) [3]int32 {
	if at := 3 * token; at < len(q.places) {
		return [3]int32(q.places[at : at+3])
	}
	p := int32(token + q.shift)
	return [3]int32{p, p, p}
}

// Output is what was generated so far.
func (q *Sequence) Output() []int32 { return q.Tokens[q.Prompt:] }

// remaining is how many tokens the next steps have to compute before another
// one can be chosen.
func (q *Sequence) remaining() int { return len(q.Tokens) - q.Computed }

// prefilling says that more than the newest token has to be computed.
func (q *Sequence) prefilling() bool { return q.remaining() > 1 || q.Computed == 0 }

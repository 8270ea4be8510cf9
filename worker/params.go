package worker

import (
	"time"

	"roundhouse/kernels"
)

// Params say how the tokens of a request are chosen and when it ends. Zero
// values are not defaults: whoever fills them in has them all.
type Params struct {
	N           int
	MaxTokens   int
	MinTokens   int
	Temperature float32 // 0: greedy
	TopK        int32   // 0: all
	TopP        float32
	MinP        float32
	Seed        uint64

	Presence   float32
	Frequency  float32
	Repetition float32 // 1: none
	Bias       map[int32]float32
	BadWords   [][]int32
	Allowed    []int32 // nil: all

	StopIDs   []int32
	IgnoreEOS bool

	// Logprobs is how many candidates come with each token; -1: none, 0: the
	// token's own alone. PromptLogprobs is the same for the prompt. ProbeIDs
	// are tokens whose logits are wanted besides.
	Logprobs       int
	PromptLogprobs int
	ProbeIDs       []int32
}

// Guide restricts what may come next: a grammar at its place in the text. The
// engine calls it from its own goroutine; a panic in it ends its request.
type Guide interface {
	// Mask returns one bit a token of those that may come next when remaining
	// more tokens can follow at most; nil allows all. The slice stays the
	// guide's and holds until the next call.
	Mask(remaining int) []uint32
	// Accept moves on by one token. It says false when that token was not
	// allowed.
	Accept(token int32) bool
	// Done says that the text is complete and nothing may follow.
	Done() bool
}

// Timer is a Guide of texts that have times among their tokens, see
// kernels.Sampling.Times.
type Timer interface{ Times() int32 }

// Request is what the engine is asked for.
type Request struct {
	ID       string
	Tokens   []int32 // the prompt
	Params   Params
	Priority int
	Salt     string   // prompts with different salts share no cache
	Guides   []Guide  // one a choice, or nil
	Adapter  *Adapter // of Engine.Adapter; nil: the model as it is

	// Media are what of the prompt is no text, in its order.
	Media []Item

	// Resume are output tokens that were sent before; they count as generated.
	// Only a request with one choice can be resumed.
	Resume []int32

	// Door and Chunks are what the front door said of itself: its id, and the
	// digests of the prompt's chunks, in order.
	Door   string
	Chunks []string

	// Waited is for how long the request has waited before it came here; it ages
	// from then on. What is beyond api.MostWaited is not believed.
	Waited time.Duration
}

// Finish says why a choice ended.
type Finish string

// The reasons, in vLLM's words. The empty string means that it goes on.
const (
	FinishStop   Finish = "stop"
	FinishLength Finish = "length"
	FinishAbort  Finish = "abort"
	FinishError  Finish = "error"
)

// Event is one token of one choice, or its end, or both.
type Event struct {
	Choice int
	Token  int32 // -1: none, the event carries something else
	Chosen kernels.Choice
	Finish Finish
	StopID int32 // the stop token that ended the choice, when it is not the model's own end; -1: none
	Mark   bool  // the last token marks the end and is no part of the text
	Err    error // with FinishError: what happened
	Cached int   // prompt tokens found in the cache
	Prompt []PromptRow
}

// PromptRow is what the model thought of one prompt token, given those before.
type PromptRow struct {
	Position int // of the token in the prompt, from 1
	Choice   kernels.Choice
}

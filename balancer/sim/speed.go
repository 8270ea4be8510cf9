package sim

// Speed is how fast a simulated engine computes. A step takes Base (one pass
// over the weights), plus PerPrefill for each prompt token in it and PerDecode
// for each running request, and what each of them reads of its context. Seconds.
type Speed struct {
	Base       float64 `json:"base_seconds"`
	PerPrefill float64 `json:"prompt_token_seconds"`
	PerDecode  float64 `json:"running_request_seconds"`
	PerPair    float64 `json:"prompt_token_pair_seconds"` // of a prompt token and one before it
	PerContext float64 `json:"context_token_seconds"`     // of a running request and one token that it reads
	Budget     int     `json:"max_num_batched_tokens"`
	Capacity   int     `json:"kv_capacity_tokens"`
	Longest    int     `json:"max_prompt_tokens"`
	Seats      int     `json:"max_num_seqs"`     // 0: 256
	InOrder    bool    `json:"prompts_in_order"` // prompts are computed as they come, not the shortest first

	// Overhead is what a request takes besides, between a client and the engine: HTTP, and
	// the processor that client and server wait for.
	Overhead float64 `json:"request_overhead_seconds"`
}

// Fitted is our own worker on a model of Qwen3-0.6B's shape in int4 and two
// cores, as `go run ./balancer/sim/fit` found it.
var Fitted = Speed{Base: 0.00677, PerPrefill: 0.00099, PerPair: 1.43e-06, PerDecode: 0.00105, PerContext: 5.82e-06, Budget: 256, Capacity: 37_440, Longest: 4000}

// Accelerator is a mid-size model on one accelerator under an engine that
// computes prompts as they come: about 16 000 prompt tokens a second and 60
// tokens a second of one stream.
var Accelerator = Speed{Base: 0.012, PerPrefill: 1.0 / 16000, PerDecode: 0.00015, Budget: 2048, Capacity: 120_000, Longest: 24_000, InOrder: true}

// usualSeats is how many requests an engine runs at once if nothing else is said.
const usualSeats = 256

func (s *Speed) seats() int {
	if s.Seats > 0 {
		return s.Seats
	}
	return usualSeats
}

// slower is an engine whose every step takes so many times as long.
func (s Speed) slower(times float64) Speed {
	s.Base, s.PerPrefill, s.PerPair, s.PerDecode, s.PerContext = times*s.Base, times*s.PerPrefill, times*s.PerPair, times*s.PerDecode, times*s.PerContext
	return s
}

// Work is what a job takes of an engine alone, its steps shared with fifteen
// others while it decodes.
func (s *Speed) Work(j *Job) float64 {
	p, o, cached := float64(j.Prompt), float64(j.Output), float64(j.shared)
	return s.prefill(j.Prompt) - cached*(s.PerPrefill+cached/2*s.PerPair) + o*(s.Base/16+s.PerDecode+(p+o/2)*s.PerContext)
}

// prefill is how long a prompt alone takes, what its steps cost by themselves
// left out.
func (s *Speed) prefill(tokens int) float64 {
	p := float64(tokens)
	return p*s.PerPrefill + p*p/2*s.PerPair
}

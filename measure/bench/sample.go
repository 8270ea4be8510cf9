package bench

import "time"

// Request is one request of a data set.
type Request struct {
	Prompt       string
	PromptTokens int           // as the data set counts them; 0: unknown
	Output       int           // tokens asked for
	At           time.Duration // due time of a recorded trace
	Want         string        // the right answer, for data whose answers can be judged; "": any
	Model        string        // instead of the run's model, e.g. an adapter
}

// Sample is what became of one request. Times are from the run's start; a time that
// never came is 0.
type Sample struct {
	Due, Sent   time.Duration
	First, Last time.Duration // first and last event with choices
	End         time.Duration // the answer's end, or the failure
	Content     time.Duration // first event that carries content, reasoning, a tool call or text
	Gaps        []time.Duration
	Events      int
	Prompt      int // tokens, by usage
	Output      int // tokens, by usage
	Text        string
	Worker      string // x-roundhouse-worker
	Err         string // why it failed; "": it did not
	Cut         bool   // the run was stopped before its end: neither a success nor a failure
	Wrong       bool   // its answer is not the one that its data set wants
}

// OK reports whether the request came to its end.
func (s *Sample) OK() bool { return s.Err == "" && !s.Cut }

// TTFT is the time to the first event.
func (s *Sample) TTFT() time.Duration { return s.First - s.Sent }

// E2EL is the time to the last event.
func (s *Sample) E2EL() time.Duration { return s.Last - s.Sent }

// TPOT is the time of each token after the first, 0 if there is none.
func (s *Sample) TPOT() time.Duration {
	if s.Output < 2 {
		return 0
	}
	return (s.E2EL() - s.TTFT()) / time.Duration(s.Output-1)
}

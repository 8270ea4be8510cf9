package worker

import "slices"

// NGram is speculation by the text's own repetitions: what followed the last
// few tokens when they stood in the text before is guessed to follow again.
type NGram struct {
	Tokens int // guesses a step; 0: no speculation
	Max    int // longest and
	Min    int // shortest run of last tokens that is looked for
}

// Guess returns up to Tokens tokens that may follow text. The longest run
// decides, and of its occurrences the first.
func (g NGram) Guess(text []int32) []int32 {
	for n := min(g.Max, len(text)-1); n >= g.Min && n > 0; n-- {
		tail := text[len(text)-n:]
		for i := 0; i+n < len(text); i++ {
			if slices.Equal(text[i:i+n], tail) {
				return text[i+n : min(i+n+g.Tokens, len(text))]
			}
		}
	}
	return nil
}

// draft gives the running sequences that lack one token guesses of those
// after it. The step verifies them with the same random numbers that would
// have chosen the tokens one by one, so they change no output.
func (e *Engine) draft() {
	if e.cfg.NGram.Tokens == 0 {
		return
	}
	for _, q := range e.sched.running {
		if q.prefilling() || !q.rules.plain() {
			continue
		}
		room := min(q.rules.params.MaxTokens-len(q.Output()), e.cfg.MaxModelLen-len(q.Tokens)) - 1
		guess := e.cfg.NGram.Guess(q.Tokens)
		q.Drafts = slices.Clone(guess[:max(0, min(len(guess), room))])
	}
}

package ledger

import (
	"math"
	"sync"
)

// Learned is what the door has learned of one model: how many bytes of a
// request make a token, and how long answers are.
type Learned struct {
	mu     sync.Mutex
	bytes  average // bytes a prompt token
	output average
}

// The priors, until the first answers have told.
const (
	priorBytes  = 4
	priorOutput = 256
)

// Estimate returns the tokens of a prompt of so many bytes, and of the answer
// to expect, which maxTokens bounds; 0: unbounded.
func (l *Learned) Estimate(promptBytes int, maxTokens int64) (prompt, expect int64) {
	l.mu.Lock()
	per, out := l.bytes.v, l.output.v
	if l.bytes.n == 0 {
		per = priorBytes
	}
	if l.output.n == 0 {
		out = priorOutput
	}
	l.mu.Unlock()
	prompt = int64(math.Ceil(float64(promptBytes)/math.Max(per, 0.25))) + 1
	expect = int64(math.Ceil(out))
	if maxTokens > 0 {
		expect = min(expect, maxTokens)
	}
	return prompt, max(expect, 1)
}

// Learned returns the averages, 0 where nothing was learned.
func (l *Learned) Learned() (bytes, output float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes.v, l.output.v
}

// Take takes over what another door has learned, where this one has learned
// nothing yet.
func (l *Learned) Take(bytes, output float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes.n == 0 && bytes > 0 {
		l.bytes.add(bytes)
		l.bytes.n = 20
	}
	if l.output.n == 0 && output > 0 {
		l.output.add(output)
		l.output.n = 20
	}
}

// Length is what was learned of the prompts of one class of length: the seconds that
// a token takes in them, near the least that was seen.
type Length struct {
	Tokens  float64 // of such a prompt, on average
	Seconds float64
	Seen    int
}

// Lengths returns what a group's workers have shown of how the work of a prompt
// grows with its length, the shortest first.
func (l *Ledger) Lengths(g *Group) (out []Length) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range g.curve.lows {
		if at.n > 0 {
			out = append(out, Length{at.tokens, at.seconds, at.n})
		}
	}
	return out
}

// TakeLengths takes over what another door has learned of a group, where this one
// has learned nothing yet.
func (l *Ledger) TakeLengths(g *Group, all []Length) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.curve.n > 0 {
		return
	}
	for _, at := range all {
		if at.Seen > 0 && at.Tokens >= 1 && at.Tokens < 1<<40 && at.Seconds > 0 && !math.IsInf(at.Seconds, 0) {
			g.curve.lows[classOf(int64(at.Tokens))] = low{at.Tokens, at.Seconds, min(at.Seen, 64)}
			g.curve.n += at.Seen
		}
	}
	g.curve.fit()
}

// Learn takes what one answer said.
func (l *Learned) Learn(promptBytes int, prompt, output int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if promptBytes >= 64 && prompt > 0 {
		l.bytes.add(float64(promptBytes) / float64(prompt))
	}
	if output > 0 {
		l.output.add(float64(output))
	}
}

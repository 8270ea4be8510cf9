package ledger

import (
	"math"
	"sync"
)

// Learned is what the door has learned of one model: how many bytes of a
// request make a token, and how long answers are.
type Learned struct {
	mu     sync.Mutex
	bytes  average // bytes of text a prompt token
	media  average // prompt tokens a picture or piece of sound
	pixels average // prompt tokens for as many pixels as usualPixels
	output average
}

// The priors, until the first answers have told.
const (
	priorBytes  = 4
	priorMedia  = 1024
	priorOutput = 256
	priorPixels = 1
)

// usualPixels is what models that see make a token of, before any has told.
const usualPixels = 28 * 28

// Size is what a prompt is made of, as far as a door can see.
type Size struct {
	Text   int // bytes, in which tools are counted too
	Media  int // pictures and pieces of sound or film: their bytes say nothing of their tokens
	Pixels int // of pictures whose size is known, which Media leaves out
	IDs    int // tokens that were given as such
}

// squares is the pixels in units of usualPixels.
func (s *Size) squares() float64 { return float64(s.Pixels) / usualPixels }

// Estimate returns the tokens of a prompt, and of the answer to expect, which
// maxTokens bounds; 0: unbounded.
func (l *Learned) Estimate(s Size, maxTokens int64) (prompt, expect int64) {
	l.mu.Lock()
	per, media, pixels, out := l.perToken(), l.media.v, l.pixels.v, l.output.v
	if l.pixels.n == 0 {
		pixels = priorPixels
	}
	if l.media.n == 0 {
		media = priorMedia
	}
	if l.output.n == 0 {
		out = priorOutput
	}
	l.mu.Unlock()
	prompt = int64(math.Ceil(float64(s.Text)/per+media*float64(s.Media)+pixels*s.squares())) + int64(s.IDs) + 1
	expect = int64(math.Ceil(out))
	if maxTokens > 0 {
		expect = min(expect, maxTokens)
	}
	return prompt, max(expect, 1)
}

// perToken is the bytes of text that make a token. l.mu is held.
func (l *Learned) perToken() float64 {
	if l.bytes.n == 0 {
		return priorBytes
	}
	return math.Max(l.bytes.v, 0.25)
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

// Learn takes what one answer said. What a token is in bytes, prompts of text
// alone tell.
func (l *Learned) Learn(s Size, prompt, output int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case prompt <= 0:
	case s.Pixels > 0:
		if rest := float64(prompt) - float64(s.Text)/l.perToken() - float64(s.IDs); rest > 0 && s.Media == 0 {
			l.pixels.add(rest / s.squares())
		}
	case s.Media > 0:
		if rest := float64(prompt) - float64(s.Text)/l.perToken() - float64(s.IDs); rest > 0 {
			l.media.add(rest / float64(s.Media))
		}
	case s.IDs == 0 && s.Text >= 64:
		l.bytes.add(float64(s.Text) / float64(prompt))
	}
	if output > 0 {
		l.output.add(float64(output))
	}
}

package canary

import (
	"fmt"
	"math"
)

// Outcome is how a request has ended, and what its answer was like. What is not known of
// it is 0.
type Outcome struct {
	Failed  bool
	Refused bool    // by an engine or the door, whatever the reason
	First   float64 // seconds to the first token of a stream
	Pace    float64 // tokens a second from then on
	Tokens  float64 // of the answer
}

// Evidence is the sum of how one side's requests have ended since a step began.
type Evidence struct {
	Requests, Failed, Refused int
	First, Pace, Tokens       mean
}

// add takes an outcome in. Of what failed nothing else is learned.
func (e *Evidence) add(o Outcome) {
	e.Requests++
	switch {
	case o.Failed:
		e.Failed++
		return
	case o.Refused:
		e.Refused++
		return
	}
	e.First.add(o.First)
	e.Pace.add(o.Pace)
	e.Tokens.add(o.Tokens)
}

// mean is a mean and a variance of what was seen, after Welford.
type mean struct {
	n    int
	mean float64
	rest float64 // sum of squared differences
}

func (m *mean) add(x float64) {
	if x <= 0 {
		return // it is not known
	}
	m.n++
	d := x - m.mean
	m.mean += d / float64(m.n)
	m.rest += d * (x - m.mean)
}

// error2 is the square of the mean's standard error.
func (m *mean) error2() float64 {
	if m.n < 2 {
		return math.Inf(1)
	}
	return m.rest / float64(m.n-1) / float64(m.n)
}

// The judgement is that of rotations, and asks beside that chance would hardly make such a
// difference. Early is what ends a step before it has all its requests, which is looked at
// after each of them.
const (
	sure     = 0.01 // by chance, once a step
	early    = 1e-5
	apartBy  = 2.5 // standard errors between two averages
	earliest = 10  // requests of the model on trial
	few      = 20  // requests of the others, below which they are taken for sound
)

// worse says in what the model on trial is worse than the others; empty: in nothing. chance
// is how likely an equal may be taken for it.
func worse(c, b *Evidence, chance float64) string {
	if why := rate(c.Failed, c.Requests, b.Failed, b.Requests, chance, "failed"); why != "" {
		return why
	}
	return rate(c.Refused, c.Requests, b.Refused, b.Requests, chance, "were refused")
}

// worseOn says in what the averages of its answers are worse.
func worseOn(c, b *Evidence) string {
	apart := func(x, y *mean) float64 {
		if x.n < few || y.n < few {
			return 0
		}
		return (x.mean - y.mean) / math.Sqrt(max(x.error2()+y.error2(), 1e-18))
	}
	switch {
	case c.First.mean > b.First.mean*1.5+0.05 && apart(&c.First, &b.First) > apartBy:
		return fmt.Sprintf("%.2f s to the first token, %.2f s of the others", c.First.mean, b.First.mean)
	case c.Pace.mean < b.Pace.mean*0.7 && apart(&b.Pace, &c.Pace) > apartBy:
		return fmt.Sprintf("%.1f tokens/s, %.1f of the others", c.Pace.mean, b.Pace.mean)
	case (c.Tokens.mean > b.Tokens.mean*2 || c.Tokens.mean < b.Tokens.mean/2) && math.Abs(apart(&c.Tokens, &b.Tokens)) > apartBy:
		return fmt.Sprintf("its answers have %.0f tokens, the others' %.0f", c.Tokens.mean, b.Tokens.mean)
	}
	return ""
}

// rate says that a share of the requests ended badly, if that is more than is let pass: one
// and a half times as many as of the others, and one in a hundred.
func rate(bad, n, otherBad, otherN int, chance float64, did string) string {
	theirs := 0.0
	if otherN >= few {
		theirs = float64(otherBad) / float64(otherN)
	}
	let := min(theirs*1.5+0.01, 1)
	if float64(bad) <= let*float64(n) || atLeast(bad, n, let) > chance {
		return ""
	}
	return fmt.Sprintf("%.1f %% of its requests %s, %.1f %% of the others'", float64(bad)/float64(n)*100, did, theirs*100)
}

// atLeast is how likely k or more of n are, if each is with probability p.
func atLeast(k, n int, p float64) float64 {
	if p >= 1 || k <= 0 {
		return 1
	}
	lgamma := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	term := math.Exp(lgamma(n) - lgamma(k) - lgamma(n-k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	sum := 0.0
	for i := k; i <= n && term > sum*1e-12; i++ { // from the mean on each is less than the one before
		sum += term
		term *= float64(n-i) / float64(i+1) * p / (1 - p)
	}
	return sum
}

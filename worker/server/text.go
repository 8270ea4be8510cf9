package server

import (
	"slices"
	"strings"

	"roundhouse/worker"
	"roundhouse/worker/parser"
	"roundhouse/worker/tokenizer"
)

// textOptions say how tokens become text.
type textOptions struct {
	stops       []string
	includeStop bool
	skipSpecial bool
	minTokens   int
	repeats     *repetition

	// marks are tokens that hold an answer together. Before the text of each
	// stands parser.Token, which the text of no other token has.
	marks []int32
}

// assembler turns one choice's tokens into text and looks for its stop
// strings. Whatever it says depends on the tokens alone, so replaying them
// brings it to the same place.
type assembler struct {
	o       textOptions
	dec     *tokenizer.Decoder
	held    string // decoded, not said: it may be the beginning of a stop string
	tokens  int
	recent  []int32         // the last tokens, as far as a repetition is looked for
	pending int32           // the last token that was sent before; -1: none
	text    strings.Builder // all that was said
	finish  worker.Finish
	stopped any // the stop string or token id that ended the choice; nil: none
}

func newAssembler(t *tokenizer.Tokenizer, o textOptions) *assembler {
	return &assembler{o: o, dec: t.NewDecoder(o.skipSpecial), pending: -1}
}

// add takes a token and what its event says of the end, and returns the text
// that it releases.
func (a *assembler) add(token int32, end *worker.Event) string {
	if a.finish != "" {
		return ""
	}
	fresh := ""
	if token >= 0 {
		a.tokens++
		// The token that marks the end is no part of the text, unless asked for.
		if !end.Mark || a.o.includeStop {
			fresh = a.decode(token)
		}
	}
	if end.Finish != "" {
		fresh += a.dec.Flush()
		a.finish = end.Finish
		if end.StopID >= 0 {
			a.stopped = end.StopID
		}
	} else if token >= 0 && a.circles(token) {
		a.finish, a.stopped = FinishRepetition, "repetition_detected"
		fresh += a.dec.Flush()
	}
	return a.release(fresh)
}

// decode is a token's text, with the sign of a mark.
func (a *assembler) decode(token int32) string {
	if slices.Contains(a.o.marks, token) {
		return a.dec.Flush() + parser.Token + a.dec.Add(token)
	}
	text := a.dec.Add(token)
	if a.o.marks != nil {
		text = strings.ReplaceAll(text, parser.Token, "")
	}
	return text
}

// FinishRepetition is the end of an answer that goes in circles.
const FinishRepetition worker.Finish = "repetition"

// circles takes note of a token and reports whether the text has come to repeat
// itself.
func (a *assembler) circles(token int32) bool {
	keep := a.o.repeats.keep()
	if keep == 0 {
		return false
	}
	if len(a.recent) >= 2*keep {
		a.recent = append(a.recent[:0], a.recent[len(a.recent)-keep:]...)
	}
	a.recent = append(a.recent, token)
	return a.tokens >= a.o.minTokens && a.o.repeats.in(a.recent)
}

// release says what can be said now that fresh text has come.
func (a *assembler) release(fresh string) string {
	text := a.held + fresh
	a.held = ""
	if a.tokens > a.o.minTokens || a.o.minTokens == 0 {
		if at, stop := a.find(text); at >= 0 {
			a.finish, a.stopped = worker.FinishStop, stop
			if a.o.includeStop {
				at += len(stop)
			}
			return a.say(text[:at])
		}
	}
	if a.finish != "" {
		return a.say(text)
	}
	keep := a.beginnings(text)
	a.held = text[len(text)-keep:]
	return a.say(text[:len(text)-keep])
}

func (a *assembler) say(s string) string {
	a.text.WriteString(s)
	return s
}

// find returns where the first stop string begins; of several that begin
// there, the one named first.
func (a *assembler) find(text string) (at int, stop string) {
	at = -1
	for _, s := range a.o.stops {
		if i := strings.Index(text, s); i >= 0 && (at < 0 || i < at) {
			at, stop = i, s
		}
	}
	return at, stop
}

// beginnings is the length of the longest end of text that begins a stop
// string.
func (a *assembler) beginnings(text string) int {
	longest := 0
	for _, s := range a.o.stops {
		for n := min(len(s)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, s[:n]) {
				longest = n
			}
		}
	}
	return longest
}

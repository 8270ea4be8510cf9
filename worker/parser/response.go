package parser

import "strings"

// responseParser takes off the tags of an answer that begins with one, as ERNIE writes
// it. What stands outside of them is dropped, but for calls behind the answer.
type responseParser struct {
	open, shut string
	held       string
	at         place
}

// place is where a responseParser stands.
type place int

const (
	before  place = iota // of the answer
	within               // the tags
	behind               // the last end tag so far
	without              // tags, or in what is to be kept behind them
)

// callMark begins a call behind the answer.
const callMark = "<tool_call>"

func (r *responseParser) add(text string) string {
	r.held += text
	var out strings.Builder
	for {
		was := r.at
		out.WriteString(r.step())
		if r.at == was {
			return out.String()
		}
	}
}

// step goes on as far as it can tell, or to the next place.
func (r *responseParser) step() string {
	switch r.at {
	case before:
		rest := strings.TrimLeft(r.held, " \t\r\n")
		switch is, maybe := begins(rest, r.open); {
		case is:
			r.held, r.at = rest[len(r.open):], within
		case !maybe:
			r.at = without
		}
		return ""
	case within:
		before, rest, found := cut(r.held, r.shut)
		r.held = rest
		if found {
			r.at = behind
		}
		return before
	case behind:
		if i := strings.Index(r.held, r.shut); i >= 0 { // that one was no end: the last is
			out := r.shut + r.held[:i]
			r.held = r.held[i+len(r.shut):]
			return out
		}
		if is, _ := begins(strings.TrimLeft(r.held, " \t\r\n"), callMark); is {
			r.at = without
		}
		return ""
	}
	out := r.held
	r.held = ""
	return out
}

func (r *responseParser) finish() string {
	out := r.held
	r.held = ""
	if r.at == behind {
		return ""
	}
	return out
}

package parser

import "strings"

const (
	thinkOpen = "<think>"
	thinkShut = "</think>"
)

// reasoningParser cuts the reasoning off the front of an output: what stands
// between <think> and </think>. open says that the reasoning has begun
// without a marker: deepseek_r1's always has, qwen3's if the prompt ends in
// it; a marker at the beginning is dropped all the same.
type reasoningParser struct {
	open    bool
	started bool // the beginning was looked at
	done    bool // behind the reasoning, or there is none
	held    string
}

func (r *reasoningParser) inside() bool { return !r.done && (r.open || r.started) }

// add returns the content in a piece of text.
func (r *reasoningParser) add(text string, out *output) string {
	if r.done {
		return text
	}
	r.held += text
	if !r.started {
		trimmed := strings.TrimLeft(r.held, " \t\r\n")
		is, maybe := begins(trimmed, thinkOpen)
		switch {
		case is:
			r.held = trimmed[len(thinkOpen):]
		case maybe:
			return ""
		case !r.open:
			r.done = true
			return r.held
		}
		r.started = true
	}
	before, rest, found := cut(r.held, thinkShut)
	out.delta.Reasoning += before
	r.held = rest
	if !found {
		return ""
	}
	r.done = true
	r.held = ""
	return rest
}

// finish returns the content that was held back.
func (r *reasoningParser) finish(out *output) string {
	held := r.held
	r.held = ""
	if r.done {
		return ""
	}
	if r.open || r.started {
		out.delta.Reasoning += held
		return ""
	}
	return held
}

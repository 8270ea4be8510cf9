package server

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"roundhouse/worker"
)

// Parser tells apart what one choice says. It is fed the text as it comes, and
// what it returns depends on that text alone, however it was cut.
type Parser interface {
	// Add takes more text and returns what is certain by now.
	Add(text string) []Said
	// End returns what is left when the text is complete.
	End() []Said
}

// Said is a piece of what a choice says: one of its fields.
type Said struct {
	Content   string
	Reasoning string
	Call      *CallPiece
}

// CallPiece is a piece of a tool call: its name first, then its arguments.
type CallPiece struct {
	Index     int
	Name      string // with the first piece
	Arguments string // more of the JSON text
}

// reader turns one choice's text into deltas: first what tells reasoning from
// the rest, then what tells tool calls from content.
type reader struct {
	id       string // of the request and the choice: what the calls' ids are made of
	thoughts Parser // nil: there is no reasoning
	calls    Parser // nil: there are no tool calls
	named    string // all content is the arguments of this function
	opened   bool
	called   bool
	reasoned bool // some reasoning was said
}

// read takes the text that one token released; last says that it was the last.
func (r *reader) read(text string, last bool) chatDelta {
	var d chatDelta
	for _, s := range through(r.thoughts, text, last) {
		if s.Reasoning != "" {
			r.reasoned = true
			d.Reasoning = joined(d.Reasoning, s.Reasoning)
		}
		if s.Content != "" {
			r.content(&d, s.Content, false)
		}
	}
	if last {
		r.content(&d, "", true)
	}
	return d
}

// through passes text to a parser, or on as content where there is none.
func through(p Parser, text string, last bool) []Said {
	if p == nil {
		return []Said{{Content: text}}
	}
	var out []Said
	if text != "" {
		out = p.Add(text)
	}
	if last {
		out = append(out, p.End()...)
	}
	return out
}

// content reads what is not reasoning.
func (r *reader) content(d *chatDelta, text string, last bool) {
	if r.named != "" {
		r.arguments(d, text, last)
		return
	}
	for _, s := range through(r.calls, text, last) {
		if s.Content != "" {
			d.Content = joined(d.Content, s.Content)
		}
		if s.Call != nil {
			r.call(d, s.Call)
		}
	}
}

// arguments is content when it is all one function's arguments.
func (r *reader) arguments(d *chatDelta, text string, last bool) {
	if text == "" && !(last && !r.opened) {
		return
	}
	p := &CallPiece{Arguments: text}
	if !r.opened {
		r.opened, p.Name = true, r.named
	}
	r.call(d, p)
}

// call adds a piece of a call. Pieces of the same call are one delta.
func (r *reader) call(d *chatDelta, p *CallPiece) {
	r.called = true
	if n := len(d.ToolCalls); n > 0 && p.Name == "" && d.ToolCalls[n-1].Index == p.Index {
		last := &d.ToolCalls[n-1]
		last.Function.Arguments = joined(last.Function.Arguments, p.Arguments)
		return
	}
	t := toolDelta{Index: p.Index, Function: functionDelta{Name: p.Name}}
	if p.Name != "" {
		t.ID, t.Type = fmt.Sprintf("chatcmpl-tool-%016x", xxhash.Sum64String(fmt.Sprintf("%s/%d", r.id, p.Index))), "function"
	}
	if p.Arguments != "" || p.Name != "" {
		arguments := p.Arguments
		t.Function.Arguments = &arguments
	}
	d.ToolCalls = append(d.ToolCalls, t)
}

func joined(p *string, more string) *string {
	text := value(p, "") + more
	return &text
}

// finish is the finish_reason. A named function keeps the engine's own.
func (r *reader) finish(why worker.Finish) string {
	if r.called && r.named == "" && why == worker.FinishStop {
		return "tool_calls"
	}
	return string(why)
}

// gathered collects deltas into a message.
type gathered struct {
	content, reasoning string
	calls              []toolCall
	any, thought       bool
}

func (g *gathered) add(d chatDelta) {
	if d.Content != nil {
		g.content += *d.Content
		g.any = true
	}
	if d.Reasoning != nil {
		g.reasoning += *d.Reasoning
		g.thought = true
	}
	for _, t := range d.ToolCalls {
		for len(g.calls) <= t.Index {
			g.calls = append(g.calls, toolCall{Type: "function"})
		}
		c := &g.calls[t.Index]
		if t.ID != "" {
			c.ID = t.ID
		}
		c.Function.Name += t.Function.Name
		c.Function.Arguments += value(t.Function.Arguments, "")
	}
}

// message is what was gathered; a message that only calls tools has no content.
func (g *gathered) message(echo string) message {
	m := message{Role: "assistant", ToolCalls: g.calls}
	if m.ToolCalls == nil {
		m.ToolCalls = []toolCall{}
	}
	if text := echo + g.content; text != "" || len(g.calls) == 0 && !g.thought {
		m.Content = &text
	}
	if g.thought {
		m.Reasoning = &g.reasoning
	}
	return m
}

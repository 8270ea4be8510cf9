package server

import (
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"

	"roundhouse/worker"
	"roundhouse/worker/parser"
)

// reader turns one choice's text into deltas: reasoning, content and calls.
type reader struct {
	id      string // of the request and the choice: what the calls' ids are made of
	parser  *parser.Parser
	named   bool // the answer is the arguments of one function
	silent  bool // thoughts are read, and not told
	thought int  // tokens of reasoning
}

// read takes the text that one token released; last says that it was the last.
func (r *reader) read(u *update) chatDelta {
	if u.token >= 0 && r.parser.Reasons() {
		r.thought++
	}
	var d chatDelta
	if u.text != "" {
		r.add(&d, r.parser.Add(u.text))
	}
	if u.finish != "" {
		r.add(&d, r.parser.Finish())
	}
	return d
}

// add turns what the parser says into an event's delta.
func (r *reader) add(d *chatDelta, p parser.Delta) {
	if p.Reasoning != "" && !r.silent {
		d.Reasoning = joined(d.Reasoning, p.Reasoning)
	}
	if p.Content != "" {
		d.Content = joined(d.Content, p.Content)
	}
	for _, c := range p.Calls {
		r.call(d, c)
	}
}

// callPrefix begins the ids of calls.
const callPrefix = "chatcmpl-tool-"

// call adds a piece of a call. Pieces of the same call are one delta.
func (r *reader) call(d *chatDelta, c parser.CallDelta) {
	if n := len(d.ToolCalls); n > 0 && c.Name == "" && d.ToolCalls[n-1].Index == c.Index {
		last := &d.ToolCalls[n-1]
		last.Function.Arguments = joined(last.Function.Arguments, c.Arguments)
		return
	}
	t := toolDelta{Index: c.Index, Function: functionDelta{Name: c.Name, Arguments: &c.Arguments}}
	if c.Name != "" {
		t.ID, t.Type = callPrefix+fmt.Sprintf("%016x", xxhash.Sum64String(fmt.Sprintf("%s/%d", r.id, c.Index))), "function"
	}
	d.ToolCalls = append(d.ToolCalls, t)
}

func joined(p *string, more string) *string {
	text := value(p, "") + more
	return &text
}

// finish is the finish_reason. A named function keeps the engine's own.
func (r *reader) finish(why worker.Finish) string {
	if r.parser.Calls() > 0 && !r.named && why == worker.FinishStop {
		return "tool_calls"
	}
	return string(why)
}

// marks are those of the reasoning parser, or else the usual ones.
func (s *Server) marks() parser.Marks {
	if m, ok := parser.Thoughts(s.cfg.ReasoningParser); ok {
		return m
	}
	m, _ := parser.Thoughts("qwen3")
	return m
}

// begun reports whether what a prompt ends with has begun the reasoning, and
// whether it has ended it.
func (s *Server) begun(ending string) (inside, behind bool) {
	m := s.marks()
	open, shut := strings.LastIndex(ending, m.Open), strings.LastIndex(ending, m.Shut)
	return open > shut, shut > open && strings.TrimSpace(ending[shut+len(m.Shut):]) == ""
}

// channelMarks are the tokens that hold an answer in channels together.
func (s *Server) channelMarks() []int32 {
	out := []int32{}
	for _, name := range parser.ChannelMarks() {
		if id, ok := s.cfg.Tokenizer.TokenID(name); ok && s.cfg.Tokenizer.IsSpecial(id) {
			out = append(out, id)
		}
	}
	return out
}

// gathered collects deltas into a message.
type gathered struct {
	content, reasoning strings.Builder
	calls              []toolCall
	arguments          [][]byte // of the calls
	any, thought       bool
}

func (g *gathered) add(d chatDelta) {
	if d.Content != nil {
		g.content.WriteString(*d.Content)
		g.any = true
	}
	if d.Reasoning != nil {
		g.reasoning.WriteString(*d.Reasoning)
		g.thought = true
	}
	for _, t := range d.ToolCalls {
		for len(g.calls) <= t.Index {
			g.calls, g.arguments = append(g.calls, toolCall{Type: "function"}), append(g.arguments, nil)
		}
		c := &g.calls[t.Index]
		if t.ID != "" {
			c.ID = t.ID
		}
		c.Function.Name += t.Function.Name
		g.arguments[t.Index] = append(g.arguments[t.Index], value(t.Function.Arguments, "")...)
	}
}

// made are the calls that were gathered.
func (g *gathered) made() []toolCall {
	for i := range g.calls {
		g.calls[i].Function.Arguments = string(g.arguments[i])
	}
	return g.calls
}

// message is what was gathered; a message that only calls tools has no content.
func (g *gathered) message(role, echo string) message {
	m := message{Role: role, ToolCalls: g.made()}
	if text := echo + g.content.String(); text != "" || len(g.calls) == 0 && !g.thought {
		m.Content = &text
	}
	if g.thought {
		m.Reasoning = new(g.reasoning.String())
	}
	return m
}

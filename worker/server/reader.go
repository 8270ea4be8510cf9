package server

import "roundhouse/worker"

// reader tells apart what one choice of a chat says: reasoning, content and
// tool calls.
type reader struct{}

// read takes the text that one token released; last says that it was the last.
func (r *reader) read(text string, last bool) chatDelta {
	if text == "" {
		return chatDelta{}
	}
	return chatDelta{Content: &text}
}

// finish is the finish_reason.
func (r *reader) finish(why worker.Finish) string { return string(why) }

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

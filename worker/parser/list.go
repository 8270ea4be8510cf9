package parser

import "strings"

// listParser reads calls as a JSON list behind a mark, as hunyuan_a13b and
// granite have them:
//
//	<tool_calls>[{"name": "f", "arguments": {"x": 1}}]</tool_calls>
type listParser struct {
	opens []string
	shut  string // behind the list; "": nothing
	state listState
	held  string
	open  string
	call  *jsonCall
	raw   strings.Builder // from the mark on, until a call has its name
	calls int             // of this list
}

type listState int

const (
	listText listState = iota
	listOpen
	listCalls
	listShut
)

func (p *listParser) add(text string, out *output) {
	p.held += text
	for p.advance(out) {
	}
}

// advance takes one step. It reports false while more text is needed.
func (p *listParser) advance(out *output) bool {
	switch p.state {
	case listText:
		before, marker, rest := cutAny(p.held, p.opens...)
		out.content(before)
		p.held = rest
		if marker == "" {
			return false
		}
		p.open, p.state, p.calls = marker, listOpen, 0
		p.raw.Reset()
		p.raw.WriteString(marker)
	case listShut:
		trimmed := strings.TrimLeft(p.held, " \t\r\n")
		is, maybe := begins(trimmed, p.shut)
		switch {
		case is:
			p.held = trimmed[len(p.shut):]
		case maybe:
			return false
		}
		p.state = listText
	default:
		return p.feed(out)
	}
	return true
}

// feed takes bytes of the list. It reports false when the text is used up.
func (p *listParser) feed(out *output) bool {
	for i := range len(p.held) {
		c := p.held[i]
		if p.raw.Len() > 0 {
			p.raw.WriteByte(c)
		}
		switch {
		case p.call != nil:
			p.call.feed(c, out)
			if p.call.named {
				p.raw.Reset()
			}
			switch p.call.state {
			case callDone:
				p.call = nil
				p.calls++
			case callBad:
				p.bad(i, out)
				return true
			}
		case isBlank(c):
		case p.state == listOpen && c == '[':
			p.state = listCalls
		case p.state == listCalls && c == '{':
			p.call = &jsonCall{}
			p.call.feed(c, out)
		case p.state == listCalls && c == ',' && p.calls > 0:
		case p.state == listCalls && c == ']' && p.calls > 0:
			p.held, p.state = p.held[i+1:], listShut
			return true
		default:
			p.bad(i, out)
			return true
		}
	}
	p.held = ""
	return false
}

// bad ends a list that is none, or breaks off, at byte i. What no call took is
// content.
func (p *listParser) bad(i int, out *output) {
	if p.raw.Len() > 0 {
		out.content(p.raw.String())
		i++
	}
	p.raw.Reset()
	p.held, p.state, p.call = p.held[i:], listText, nil
}

func (p *listParser) finish(out *output) {
	switch {
	case p.state == listText || p.state == listShut:
		out.content(p.held)
	case p.raw.Len() > 0:
		out.content(p.raw.String())
	}
	p.held = ""
}

package parser

import "strings"

// taggedParser reads calls in JSON between tags, as hermes has them:
//
//	<tool_call>
//	{"name": "f", "arguments": {"x": 1}}
//	</tool_call>
type taggedParser struct {
	open, shut string
	held       string
	call       *jsonCall
	raw        strings.Builder // the call's text, until its name is known
	skipping   bool            // behind a call, up to the closing tag
}

func (p *taggedParser) add(text string, out *output) {
	p.held += text
	for {
		switch {
		case p.call != nil:
			if !p.read(out) {
				return
			}
		case p.skipping:
			if !p.skip() {
				return
			}
		default:
			before, rest, found := cut(p.held, p.open)
			out.content(before)
			p.held = rest
			if !found {
				return
			}
			p.call = &jsonCall{}
			p.raw.Reset()
			p.raw.WriteString(p.open)
		}
	}
}

// skip passes over what stands between a call and its closing tag. The next
// call may come without it. It reports false while neither is there.
func (p *taggedParser) skip() bool {
	opened, shut := strings.Index(p.held, p.open), strings.Index(p.held, p.shut)
	switch {
	case opened >= 0 && (shut < 0 || opened < shut):
		p.held = p.held[opened:]
	case shut >= 0:
		p.held = p.held[shut+len(p.shut):]
	default:
		p.held = p.held[max(0, len(p.held)-len(p.shut)):]
		return false
	}
	p.skipping = false
	return true
}

// read feeds the call. It reports false when the text is used up.
func (p *taggedParser) read(out *output) bool {
	for i := range len(p.held) {
		p.call.feed(p.held[i], out)
		switch p.call.state {
		case callDone:
			p.held, p.call, p.skipping = p.held[i+1:], nil, true
			return true
		case callBad:
			// The byte that broke it may begin a tag.
			named := p.call.named
			p.held, p.call = p.held[i:], nil
			if p.skipping = named; !named {
				out.content(p.raw.String())
			}
			return true
		}
		if !p.call.named {
			p.raw.WriteByte(p.held[i])
		}
	}
	p.held = ""
	return false
}

func (p *taggedParser) finish(out *output) {
	switch {
	case p.call != nil && !p.call.named:
		out.content(p.raw.String())
	case p.call == nil && !p.skipping:
		out.content(p.held)
	}
	p.held = ""
}

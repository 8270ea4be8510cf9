package parser

import "strings"

// arrayParser reads a JSON array of calls: what tool_choice "required" makes
// of an output.
type arrayParser struct {
	prefix string // what stood before, if the array is none
	begun  bool
	plain  bool
	done   bool
	call   *jsonCall
	raw    strings.Builder
}

func (p *arrayParser) add(text string, out *output) {
	for i := range len(text) {
		if p.plain || p.done {
			out.content(text[i:])
			return
		}
		p.feed(text[i], out)
	}
}

func (p *arrayParser) feed(b byte, out *output) {
	p.raw.WriteByte(b)
	switch {
	case p.call != nil:
		p.call.feed(b, out)
		switch {
		case p.call.state == callDone:
			p.call = nil
			p.raw.Reset()
		case p.call.state == callBad:
			p.plain = true
			if !p.call.named {
				p.spill(out)
			}
		case p.call.named:
			p.raw.Reset()
		}
	case isBlank(b) || p.begun && b == ',':
	case !p.begun && b == '[':
		p.begun = true
	case p.begun && b == ']':
		p.done = true
		if out.calls == 0 {
			p.spill(out)
		}
	case p.begun && b == '{':
		p.call = &jsonCall{}
		p.call.feed(b, out)
	default:
		p.plain = true
		p.spill(out)
	}
}

// spill makes content of what was held back.
func (p *arrayParser) spill(out *output) {
	if out.calls == 0 {
		out.content(p.prefix)
	}
	out.content(p.raw.String())
	p.raw.Reset()
}

func (p *arrayParser) finish(out *output) {
	if p.plain || p.done || p.call != nil && p.call.named || p.call == nil && out.calls > 0 {
		return
	}
	p.spill(out)
}

// namedParser takes the whole output for the arguments of one tool.
type namedParser struct {
	name  string
	begun bool
}

func (p *namedParser) add(text string, out *output) {
	if !p.begun {
		p.begun = true
		out.begin(p.name)
	}
	out.arguments(text)
}

func (p *namedParser) finish(out *output) {
	if !p.begun {
		out.begin(p.name)
	}
}

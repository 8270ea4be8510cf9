package parser

import "strings"

// llamaParser reads an output that is nothing but calls, as llama3_json has
// them: {"name": "f", "parameters": {…}}, several with semicolons between, a
// <|python_tag|> before or not. Any other output is content.
type llamaParser struct {
	started bool
	plain   bool
	blank   []byte // what it begins with, before that is known
	held    string
	call    *jsonCall
	raw     strings.Builder
}

const pythonTag = "<|python_tag|>"

func (p *llamaParser) add(text string, out *output) {
	if p.plain {
		out.content(text)
		return
	}
	p.held += text
	if !p.started && !p.start(out) {
		return
	}
	for i := 0; i < len(p.held); i++ {
		b := p.held[i]
		if p.call == nil {
			if b == ';' || b == ',' || isBlank(b) {
				p.raw.WriteByte(b)
				continue
			}
			p.call = &jsonCall{}
		}
		p.call.feed(b, out)
		p.raw.WriteByte(b)
		switch {
		case p.call.state == callDone:
			p.call = nil
			p.raw.Reset()
		case p.call.state == callBad:
			p.giveUp(p.held[i+1:], out)
			return
		case p.call.named:
			p.raw.Reset()
		}
	}
	p.held = ""
}

// start looks at the beginning. It reports false while that is not known.
func (p *llamaParser) start(out *output) bool {
	trimmed := strings.TrimLeft(p.held, " \t\r\n")
	p.blank, p.held = append(p.blank, p.held[:len(p.held)-len(trimmed)]...), trimmed
	is, maybe := begins(trimmed, pythonTag)
	switch {
	case is:
		p.held = trimmed[len(pythonTag):]
	case maybe:
		return false
	case trimmed[0] != '{':
		p.plain = true
		out.content(string(p.blank) + p.held)
		p.held = ""
		return false
	}
	p.raw.Write(p.blank)
	if is {
		p.raw.WriteString(pythonTag)
	}
	p.started, p.blank = true, nil
	return true
}

// giveUp makes the rest content, from where no call had a name yet.
func (p *llamaParser) giveUp(rest string, out *output) {
	p.plain = true
	if !p.call.named {
		out.content(p.raw.String())
	}
	out.content(rest)
	p.held, p.call = "", nil
}

func (p *llamaParser) finish(out *output) {
	if p.plain {
		return
	}
	if !p.started || p.call != nil && !p.call.named || p.call == nil && out.calls == 0 {
		out.content(p.raw.String() + string(p.blank) + p.held)
	}
	p.held = ""
}

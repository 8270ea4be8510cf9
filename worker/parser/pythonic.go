package parser

import "strings"

// pythonicParser reads an output that is a Python list of calls,
// [f(x=1), g(y="z")]. Any other output is content. A call is handed out when
// its bracket closes.
type pythonicParser struct {
	state  pythonicState
	raw    strings.Builder // what is not handed out yet
	call   []byte
	depth  int
	quote  byte
	escape bool
}

type pythonicState int

const (
	pyStart pythonicState = iota
	pyBetween
	pyName
	pyArguments
	pyEnd // behind the list, or no list
)

func (p *pythonicParser) add(text string, out *output) {
	for i := range len(text) {
		if p.state == pyEnd {
			out.content(text[i:])
			return
		}
		p.raw.WriteByte(text[i])
		p.feed(text[i], out)
	}
}

func isNameStart(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_'
}

func (p *pythonicParser) feed(b byte, out *output) {
	switch p.state {
	case pyStart:
		if b == '[' {
			p.state = pyBetween
		} else if !isBlank(b) {
			p.giveUp(out)
		}
	case pyBetween:
		switch {
		case b == ']':
			if out.calls > 0 {
				p.raw.Reset()
			}
			p.giveUp(out)
		case isNameStart(b):
			p.call = append(p.call[:0], b)
			p.state = pyName
		case b != ',' && !isBlank(b):
			p.giveUp(out)
		}
	case pyName:
		p.call = append(p.call, b)
		switch {
		case b == '(':
			p.state, p.depth = pyArguments, 1
		case !isNameStart(b) && (b < '0' || b > '9') && b != '.':
			p.giveUp(out)
		}
	case pyArguments:
		p.call = append(p.call, b)
		p.inside(b, out)
	}
}

// inside follows brackets and strings until the call ends.
func (p *pythonicParser) inside(b byte, out *output) {
	switch {
	case p.escape:
		p.escape = false
	case p.quote != 0:
		p.escape = b == '\\'
		if b == p.quote {
			p.quote = 0
		}
	case b == '"' || b == '\'':
		p.quote = b
	case b == '(' || b == '[' || b == '{':
		p.depth++
	case b == ')' || b == ']' || b == '}':
		if p.depth--; p.depth > 0 {
			return
		}
		name, args, ok := parsePythonCall(string(p.call))
		if !ok {
			p.giveUp(out)
			return
		}
		out.begin(name)
		out.arguments(args)
		p.raw.Reset()
		p.state = pyBetween
	}
}

// giveUp makes what follows content, and what was held back.
func (p *pythonicParser) giveUp(out *output) {
	p.state = pyEnd
	out.content(p.raw.String())
	p.raw.Reset()
}

func (p *pythonicParser) finish(out *output) {
	if p.state != pyEnd && (out.calls == 0 || p.state != pyBetween) {
		p.giveUp(out)
	}
}

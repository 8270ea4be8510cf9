package parser

import "strings"

const (
	mistralMark = "[TOOL_CALLS]"
	mistralArgs = "[ARGS]"
)

// mistralParser reads what follows [TOOL_CALLS]: an array of calls in JSON,
// or, from the newer models, a name and its arguments, the mark before each:
//
//	[TOOL_CALLS][{"name": "f", "arguments": {}}]
//	[TOOL_CALLS]f{"x": 1}[TOOL_CALLS]g[ARGS]{}
type mistralParser struct {
	held  string
	array *arrayParser // inside an array
	named *rawObject   // inside the arguments of a newer call
	marks bool         // behind a mark
}

func (p *mistralParser) add(text string, out *output) {
	p.held += text
	for {
		switch {
		case p.array != nil:
			p.array.add(p.held, out)
			p.held = ""
			return
		case p.named != nil:
			n, done := p.named.take(p.held)
			out.arguments(p.held[:n])
			p.held = p.held[n:]
			if !done {
				return
			}
			p.named = nil
		case p.marks:
			if !p.name(out) {
				return
			}
		default:
			before, rest, found := cut(p.held, mistralMark)
			out.content(before)
			p.held = rest
			if !found {
				return
			}
			p.marks = true
		}
	}
}

// name reads what follows a mark up to where the arguments begin. It reports
// false while more text is needed.
func (p *mistralParser) name(out *output) bool {
	trimmed := strings.TrimLeft(p.held, " \t\r\n")
	if trimmed == "" {
		return false
	}
	if trimmed[0] == '[' {
		p.marks = false
		p.array = &arrayParser{prefix: mistralMark + p.held[:len(p.held)-len(trimmed)]}
		p.held = trimmed
		return true
	}
	end := strings.IndexAny(trimmed, "{\n")
	if end < 0 {
		return false
	}
	p.marks = false
	name := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(trimmed[:end]), mistralArgs))
	if trimmed[end] != '{' || name == "" {
		out.content(mistralMark)
		return true // what follows is content, and may hold another mark
	}
	out.begin(name)
	p.named = &rawObject{}
	p.held = trimmed[end:]
	return true
}

func (p *mistralParser) finish(out *output) {
	switch {
	case p.array != nil:
		p.array.finish(out)
	case p.named != nil:
	case p.marks:
		out.content(mistralMark + p.held)
	default:
		out.content(p.held)
	}
	p.held = ""
}

// rawObject finds the end of a JSON object.
type rawObject struct {
	depth  int
	quoted bool
	escape bool
}

// take returns how many bytes of s belong to the object, and whether it ends
// with them.
func (o *rawObject) take(s string) (n int, done bool) {
	for i := range len(s) {
		b := s[i]
		switch {
		case o.escape:
			o.escape = false
		case o.quoted:
			o.escape = b == '\\'
			o.quoted = b != '"'
		case b == '"':
			o.quoted = true
		case b == '{' || b == '[':
			o.depth++
		case b == '}' || b == ']':
			if o.depth--; o.depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(s), false
}

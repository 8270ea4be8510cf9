package parser

import "strings"

// glmParser reads calls as glm45 has them:
//
//	<tool_call>f
//	<arg_key>x</arg_key>
//	<arg_value>1</arg_value>
//	</tool_call>
//
// Values have no types; the tool's schema says which is which.
type glmParser struct {
	types map[string]map[string]string
	state glmState
	held  string
	inner waiting // the key or value that is being read
	tool  string
	key   string
	given int
}

type glmState int

const (
	glmText glmState = iota
	glmName
	glmArguments
	glmKey
	glmBetween
	glmValue
)

const (
	glmOpen      = "<tool_call>"
	glmShut      = "</tool_call>"
	argKeyOpen   = "<arg_key>"
	argKeyShut   = "</arg_key>"
	argValueOpen = "<arg_value>"
	argValueShut = "</arg_value>"
)

func newGLMParser(tools []Tool) *glmParser { return &glmParser{types: parameterTypes(tools)} }

func (p *glmParser) add(text string, out *output) {
	p.held += text
	for p.advance(out) {
	}
}

// advance takes one step. It reports false while more text is needed.
func (p *glmParser) advance(out *output) bool {
	switch p.state {
	case glmText:
		before, rest, found := cut(p.held, glmOpen)
		out.content(before)
		p.held = rest
		if found {
			p.state = glmName
		}
		return found
	case glmName:
		return p.name(out)
	case glmArguments:
		_, marker, rest := cutAny(p.held, argKeyOpen, glmShut)
		p.held = rest
		switch marker {
		case argKeyOpen:
			p.state = glmKey
		case glmShut:
			out.arguments("}")
			p.state = glmText
		}
		return marker != ""
	case glmKey:
		key, marker, rest := p.inner.until(p.held, argKeyShut)
		p.held = rest
		if marker == "" {
			return false
		}
		p.key, p.state = strings.TrimSpace(key), glmBetween
	case glmBetween:
		_, marker, rest := cutAny(p.held, argValueOpen, glmShut)
		p.held = rest
		switch marker {
		case argValueOpen:
			p.state = glmValue
		case glmShut:
			out.arguments("}")
			p.state = glmText
		}
		return marker != ""
	case glmValue:
		value, marker, rest := p.inner.until(p.held, argValueShut)
		p.held = rest
		if marker == "" {
			return false
		}
		p.state = glmArguments
		p.value(value, out)
	}
	return true
}

// name reads a name up to the first argument or the call's end. What has none
// is content.
func (p *glmParser) name(out *output) bool {
	at, marker := -1, ""
	for _, m := range []string{argKeyOpen, glmShut} {
		if i := strings.Index(p.held, m); i >= 0 && (at < 0 || i < at) {
			at, marker = i, m
		}
	}
	name := strings.TrimSpace(p.held[:max(at, 0)])
	switch {
	case at < 0 && len(p.held) <= maxCoderHeader:
		return false
	case at < 0 || name == "" || strings.ContainsAny(name, "\n<{"):
		out.content(glmOpen)
		p.state = glmText
		return true
	}
	p.tool, p.given = name, 0
	p.held = p.held[at+len(marker):]
	out.begin(name)
	out.arguments("{")
	p.state = glmKey
	if marker == glmShut {
		out.arguments("}")
		p.state = glmText
	}
	return true
}

func (p *glmParser) value(value string, out *output) {
	if p.key == "" {
		return
	}
	if p.given++; p.given > 1 {
		out.arguments(", ")
	}
	out.arguments(jsonText(p.key) + ": " + typedValue(value, p.types[p.tool][p.key]))
}

func (p *glmParser) finish(out *output) {
	switch p.state {
	case glmText:
		out.content(p.held)
	case glmName:
		out.content(glmOpen + p.held)
	}
	p.held = ""
}

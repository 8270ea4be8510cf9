package parser

import (
	"bytes"
	"encoding/json"
	"strings"
)

// coderParser reads calls as qwen3_coder has them:
//
//	<tool_call>
//	<function=f>
//	<parameter=x>
//	1
//	</parameter>
//	</function>
//	</tool_call>
//
// Values have no types; the tool's schema says which is which. seed_oss has
// other tags around the function.
type coderParser struct {
	open, shut string
	types      map[string]map[string]string // by tool and parameter
	state      coderState
	held       string
	inside     waiting // the value that is being read
	raw        string  // <tool_call> and what followed, until there is a name
	tool       string
	key        string
	given      int // parameters of the call so far
}

type coderState int

const (
	coderText coderState = iota
	coderOpened
	coderName
	coderFunction
	coderKey
	coderValue
	coderAfter
)

const (
	functionOpen   = "<function="
	functionShut   = "</function>"
	parameterOpen  = "<parameter="
	parameterShut  = "</parameter>"
	maxCoderHeader = 512 // bytes of a function's or parameter's name
)

func newCoderParser(tools []Tool, open, shut string) *coderParser {
	return &coderParser{open: open, shut: shut, types: parameterTypes(tools)}
}

// parameterTypes are the types of the tools' parameters, as far as a schema
// names one.
func parameterTypes(tools []Tool) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, t := range tools {
		var schema struct {
			Properties map[string]struct {
				Type any `json:"type"`
			} `json:"properties"`
		}
		types := map[string]string{}
		if json.Unmarshal(t.Parameters, &schema) == nil {
			for name, s := range schema.Properties {
				types[name], _ = s.Type.(string)
			}
		}
		out[t.Name] = types
	}
	return out
}

// cutAny is cut for the first of several markers.
func cutAny(text string, markers ...string) (before, marker, rest string) {
	at, hold := -1, 0
	for _, m := range markers {
		if i := strings.Index(text, m); i >= 0 && (at < 0 || i < at) {
			at, marker = i, m
		}
		for n := min(len(m)-1, len(text)); n > hold; n-- {
			if strings.HasSuffix(text, m[:n]) {
				hold = n
			}
		}
	}
	if at >= 0 {
		return text[:at], marker, text[at+len(marker):]
	}
	return text[:len(text)-hold], "", text[len(text)-hold:]
}

func (p *coderParser) add(text string, out *output) {
	p.held += text
	for p.advance(out) {
	}
}

// advance takes one step. It reports false while more text is needed.
func (p *coderParser) advance(out *output) bool {
	switch p.state {
	case coderText:
		before, marker, rest := cutAny(p.held, p.open, functionOpen)
		out.content(before)
		p.held, p.raw = rest, marker
		switch marker {
		case "":
			return false
		case p.open:
			p.state = coderOpened
		default:
			p.state = coderName
		}
	case coderOpened:
		return p.opened(out)
	case coderName, coderKey:
		return p.header(out)
	case coderFunction:
		_, marker, rest := cutAny(p.held, parameterOpen, functionShut, p.shut)
		p.held = rest
		switch marker {
		case "":
			return false
		case parameterOpen:
			p.state = coderKey
		default:
			p.closeCall(marker, out)
		}
	case coderValue:
		return p.value(out)
	case coderAfter:
		_, marker, rest := cutAny(p.held, p.shut, functionOpen, p.open)
		p.held = rest
		switch marker {
		case "":
			return false
		case functionOpen:
			p.raw, p.state = "", coderName
		case p.open:
			p.raw, p.state = marker, coderOpened
		default:
			p.state = coderText
		}
	}
	return true
}

// opened looks for the function behind <tool_call>.
func (p *coderParser) opened(out *output) bool {
	trimmed := strings.TrimLeft(p.held, " \t\r\n")
	is, maybe := begins(trimmed, functionOpen)
	switch {
	case is:
		p.raw += p.held[:len(p.held)-len(trimmed)] + functionOpen
		p.held = trimmed[len(functionOpen):]
		p.state = coderName
	case maybe:
		return false
	default:
		out.content(p.raw)
		p.state = coderText
	}
	return true
}

// header reads a name up to its >.
func (p *coderParser) header(out *output) bool {
	end := strings.IndexAny(p.held, ">\n")
	if end < 0 && len(p.held) <= maxCoderHeader {
		return false
	}
	if end < 0 || end > maxCoderHeader || p.held[end] == '\n' || strings.TrimSpace(p.held[:end]) == "" {
		if p.state == coderKey {
			p.state = coderFunction
			return true
		}
		out.content(p.raw)
		p.state = coderText
		return true
	}
	name := strings.TrimSpace(p.held[:end])
	p.held = p.held[end+1:]
	if p.state == coderKey {
		p.key, p.state = name, coderValue
		return true
	}
	p.tool, p.given, p.state = name, 0, coderFunction
	out.begin(name)
	out.arguments("{")
	return true
}

func (p *coderParser) closeCall(marker string, out *output) {
	out.arguments("}")
	p.state = coderAfter
	if marker == p.shut {
		p.state = coderText
	}
}

// value reads a value up to the marker that ends it.
func (p *coderParser) value(out *output) bool {
	value, marker, rest := p.inside.until(p.held, parameterShut, parameterOpen, functionShut)
	p.held = rest
	if marker == "" {
		return false
	}
	value = strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n")
	if p.given++; p.given > 1 {
		out.arguments(", ")
	}
	out.arguments(jsonText(p.key) + ": " + typedValue(value, p.types[p.tool][p.key]))
	switch marker {
	case parameterOpen:
		p.state = coderKey
	case functionShut:
		p.closeCall(marker, out)
	default:
		p.state = coderFunction
	}
	return true
}

// typedValue returns a value as JSON of its type, as a string if it is none.
func typedValue(s, kind string) string {
	word := strings.ToLower(strings.TrimSpace(s))
	if word == "null" || word == "none" && kind != "string" && kind != "" {
		return "null"
	}
	switch kind {
	case "integer", "number", "boolean", "object", "array":
		if word == "true" || word == "false" {
			return word
		}
		var b bytes.Buffer
		if json.Compact(&b, []byte(strings.TrimSpace(s))) == nil {
			return b.String()
		}
	}
	return jsonText(s)
}

func (p *coderParser) finish(out *output) {
	switch p.state {
	case coderText:
		out.content(p.held)
	case coderOpened, coderName:
		out.content(p.raw + p.held)
	}
	p.held = ""
}

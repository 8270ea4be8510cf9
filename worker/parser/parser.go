package parser

import (
	"fmt"
	"strings"
)

// Delta is what a piece of text adds.
type Delta struct {
	Reasoning string
	Content   string
	Calls     []CallDelta
}

// CallDelta is what is new of one call. The first delta of a call carries its
// name; the arguments of all its deltas together are a JSON text.
type CallDelta struct {
	Index     int
	Name      string
	Arguments string
}

// Tool is a tool that a request offers.
type Tool struct {
	Name string

	// Parameters is the JSON schema of its arguments. qwen3_coder, whose
	// notation has no types, takes them from there.
	Parameters []byte
}

// Choice says which calls a request asks for.
type Choice int

const (
	// Auto leaves it to the model, in the notation of the tool parser.
	Auto Choice = iota
	// Required makes the output a JSON array of calls, which a grammar
	// compiled by the engine holds it to.
	Required
	// Named makes the output the arguments of the one tool offered.
	Named
	// None lets no call be made: everything is content.
	None
)

// Options say how to take an output apart.
type Options struct {
	// Reasoning is the reasoning parser: one of ReasoningNames, or "" for
	// none.
	Reasoning string

	// Begun says that the prompt ends inside the reasoning, because the chat
	// template opened it.
	Begun bool

	// Tools is the tool parser: one of ToolNames, or "" for none.
	Tools string

	// Offered are the tools of the request. Without any, everything that is
	// not reasoning is content.
	Offered []Tool
	Choice  Choice
}

// ToolNames are the tool parsers, ReasoningNames the reasoning parsers.
func ToolNames() []string {
	return []string{"hermes", "llama3_json", "mistral", "pythonic", "qwen3_coder"}
}

// ReasoningNames returns the names of the reasoning parsers.
func ReasoningNames() []string { return []string{"deepseek_r1", "qwen3"} }

// toolParser takes calls out of content.
type toolParser interface {
	add(text string, out *output)
	finish(out *output)
}

// Parser takes one output apart.
type Parser struct {
	reasoning *reasoningParser // nil: none
	tools     toolParser       // nil: none
	out       output
}

// New returns a parser for one output. It fails for an unknown name, with
// those that are known; engines check theirs at start.
func New(o Options) (*Parser, error) {
	p := &Parser{}
	switch o.Reasoning {
	case "":
	case "qwen3":
		p.reasoning = &reasoningParser{open: o.Begun}
	case "deepseek_r1":
		p.reasoning = &reasoningParser{open: true}
	default:
		return nil, fmt.Errorf("reasoning parser %q is unknown; known are %s", o.Reasoning, strings.Join(ReasoningNames(), ", "))
	}
	tools, err := newToolParser(o)
	p.tools = tools
	p.out.hold = tools != nil
	return p, err
}

func newToolParser(o Options) (toolParser, error) {
	var t toolParser
	switch o.Tools {
	case "":
	case "hermes":
		t = &taggedParser{open: "<tool_call>", shut: "</tool_call>"}
	case "llama3_json":
		t = &llamaParser{}
	case "mistral":
		t = &mistralParser{}
	case "pythonic":
		t = &pythonicParser{}
	case "qwen3_coder":
		t = newCoderParser(o.Offered)
	default:
		return nil, fmt.Errorf("tool parser %q is unknown; known are %s", o.Tools, strings.Join(ToolNames(), ", "))
	}
	switch {
	case len(o.Offered) == 0 || o.Choice == None:
		return nil, nil
	case o.Choice == Required:
		return &arrayParser{}, nil
	case o.Choice == Named:
		return &namedParser{name: o.Offered[0].Name}, nil
	}
	return t, nil
}

// Add takes the next piece of text and returns what is new.
func (p *Parser) Add(text string) Delta {
	content := text
	if p.reasoning != nil {
		content = p.reasoning.add(text, &p.out)
	}
	p.content(content)
	return p.out.take()
}

func (p *Parser) content(text string) {
	if text == "" {
		return
	}
	if p.tools == nil {
		p.out.content(text)
		return
	}
	p.tools.add(text, &p.out)
}

// Finish returns what was held back, the text being over.
func (p *Parser) Finish() Delta {
	if p.reasoning != nil {
		p.content(p.reasoning.finish(&p.out))
	}
	if p.tools != nil {
		p.tools.finish(&p.out)
	}
	p.out.release()
	return p.out.take()
}

// Reasons reports whether the output is inside its reasoning, where a grammar
// does not hold it yet.
func (p *Parser) Reasons() bool { return p.reasoning != nil && p.reasoning.inside() }

// Calls returns how many calls there are so far: with one or more, the
// finish reason "stop" becomes "tool_calls".
func (p *Parser) Calls() int { return p.out.calls }

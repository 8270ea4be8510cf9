package parser

import "slices"

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

// toolParser takes calls out of content.
type toolParser interface {
	add(text string, out *output)
	finish(out *output)
}

// wrapper takes off what stands around an answer.
type wrapper interface {
	add(text string) string // what certainly belongs to the answer
	finish() string
}

// Parser takes one output apart.
type Parser struct {
	channels  *channelParser   // of an output in channels, which hold all of it; nil: it has none
	reasoning *reasoningParser // nil: none
	wrap      wrapper          // what stands around the answer; nil: nothing
	tools     toolParser       // nil: none
	out       output
}

// New returns a parser for one output. It fails for an unknown name, with
// those that are known; engines check theirs at start.
func New(o Options) (*Parser, error) {
	p := &Parser{}
	if err := o.check(); err != nil {
		return nil, err
	}
	if Channels(o.Reasoning, o.Tools) {
		p.channels = newChannelParser(o)
		return p, nil
	}
	if m, ok := Thoughts(o.Reasoning); ok {
		p.reasoning = &reasoningParser{open: o.Begun || m.Always, marks: m}
		switch {
		case m.exact:
			p.wrap = &responseParser{open: "<" + m.answer + ">", shut: "</" + m.answer + ">"}
		case m.answer != "":
			p.wrap = &wrapParser{tag: m.answer}
		}
	}
	p.tools = newToolParser(o)
	p.out.hold = p.tools != nil
	p.out.tight = !slices.Contains(loose, o.Tools)
	return p, nil
}

func newToolParser(o Options) toolParser {
	switch {
	case len(o.Offered) == 0 || o.Choice == None || o.Choice == Auto && o.Tools == "":
		return nil
	case o.Choice == Required:
		return &arrayParser{}
	case o.Choice == Named:
		return &namedParser{name: o.Offered[0].Name}
	}
	return toolParsers[o.Tools](o.Offered)
}

// Add takes the next piece of text and returns what is new.
func (p *Parser) Add(text string) Delta {
	if p.channels != nil {
		p.channels.add(text, &p.out)
		return p.out.take()
	}
	content := text
	if p.reasoning != nil {
		content = p.reasoning.add(text, &p.out)
	}
	p.content(content)
	return p.out.take()
}

func (p *Parser) content(text string) {
	if p.wrap != nil && text != "" {
		text = p.wrap.add(text)
	}
	p.unwrapped(text)
}

func (p *Parser) unwrapped(text string) {
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
	if p.channels != nil {
		p.channels.finish(&p.out)
		return p.out.take()
	}
	if p.reasoning != nil {
		p.content(p.reasoning.finish(&p.out))
	}
	if p.wrap != nil {
		p.unwrapped(p.wrap.finish())
	}
	if p.tools != nil {
		p.tools.finish(&p.out)
	}
	p.out.release()
	return p.out.take()
}

// Reasons reports whether the output is inside its reasoning, where a grammar
// does not hold it yet.
func (p *Parser) Reasons() bool {
	if p.channels != nil {
		return p.channels.reasons()
	}
	return p.reasoning != nil && p.reasoning.inside()
}

// Calls returns how many calls there are so far: with one or more, the
// finish reason "stop" becomes "tool_calls".
func (p *Parser) Calls() int { return p.out.calls }

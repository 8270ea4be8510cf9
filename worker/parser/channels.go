package parser

import "strings"

// Marks of an output in channels. They are tokens; a text that spells one is
// none, so whoever decodes puts Token before those that are.
const (
	channelStart   = "<|start|>"
	channelName    = "<|channel|>"
	channelMessage = "<|message|>"
	channelForm    = "<|constrain|>"
	channelEnd     = "<|end|>"
	channelCall    = "<|call|>"
	channelReturn  = "<|return|>"
)

// Token stands before a mark that is a token of its own.
const Token = "\x00"

// ChannelMarks are the tokens that hold an output in channels together.
func ChannelMarks() []string {
	return []string{channelStart, channelName, channelMessage, channelForm, channelEnd, channelCall, channelReturn}
}

// channelParser reads gpt-oss's messages:
//
//	<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…<|return|>
//	<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>
//
// What stands in analysis is reasoning; final, and commentary to nobody, are
// content; what goes to a function is a call.
type channelParser struct {
	hide   bool // there is no tool: what goes to one is content
	inner  toolParser
	marks  []string
	held   string
	header string // of the message that begins
	state  channelState
	kind   channelKind
}

type channelState int

const (
	channelText   channelState = iota // before any mark
	channelHeader                     // between <|start|> and <|message|>
	channelBody
	channelBetween // behind a message
)

type channelKind int

const (
	kindContent channelKind = iota
	kindReasoning
	kindCall
	kindOther
)

func newChannelParser(o Options) *channelParser {
	p := &channelParser{hide: len(o.Offered) == 0 || o.Choice == None}
	if !p.hide && o.Choice != Auto {
		// The answer is held to calls from its first token on, without channels.
		p.inner = newToolParser(o)
	}
	for _, m := range ChannelMarks() {
		p.marks = append(p.marks, Token+m)
	}
	return p
}

func (p *channelParser) reasons() bool {
	return p.state == channelBody && p.kind == kindReasoning
}

func (p *channelParser) add(text string, out *output) {
	p.held += text
	for {
		before, marker, rest := cutAny(p.held, p.marks...)
		p.text(before, out)
		p.held = rest
		if marker == "" {
			return
		}
		p.mark(strings.TrimPrefix(marker, Token), out)
	}
}

// text takes text between marks.
func (p *channelParser) text(s string, out *output) {
	if s = strings.ReplaceAll(s, Token, ""); s == "" {
		return
	}
	switch p.state {
	case channelText:
		if p.inner != nil {
			p.inner.add(s, out)
			return
		}
		out.delta.Content += s
	case channelHeader:
		if len(p.header) < maxCoderHeader {
			p.header += s
		}
	case channelBody:
		switch p.kind {
		case kindContent:
			out.delta.Content += s
		case kindReasoning:
			out.delta.Reasoning += s
		case kindCall:
			out.arguments(s)
		}
	}
}

// mark takes a mark.
func (p *channelParser) mark(m string, out *output) {
	switch m {
	case channelStart:
		p.state, p.header = channelHeader, ""
	case channelName:
		if p.state != channelHeader {
			p.state, p.header = channelHeader, ""
		}
		p.header += " " + channelName
	case channelForm:
		p.header += " "
	case channelMessage:
		p.begin(out)
	case channelEnd, channelCall, channelReturn:
		p.state = channelBetween
	}
}

// begin reads a header: the channel, and to whom the message goes, in either
// order.
func (p *channelParser) begin(out *output) {
	p.state = channelBody
	role, rest, named := strings.Cut(p.header, channelName)
	channel := ""
	if words := strings.Fields(rest); named && len(words) > 0 && !strings.HasPrefix(words[0], "to=") {
		channel = words[0]
	}
	to := ""
	for _, w := range append(strings.Fields(role), strings.Fields(rest)...) {
		if r, ok := strings.CutPrefix(w, "to="); ok {
			to = r
		}
	}
	function, isCall := strings.CutPrefix(to, "functions.")
	switch {
	case isCall && function != "" && !p.hide:
		p.kind = kindCall
		out.begin(function)
	case channel == "analysis":
		p.kind = kindReasoning
	case channel == "final" || channel == "" && to == "" || channel == "commentary" && to == "" || isCall:
		p.kind = kindContent
	default:
		p.kind = kindOther
	}
	p.header = ""
}

func (p *channelParser) finish(out *output) {
	if held := p.held; held != "" {
		p.held = ""
		p.text(held, out)
	}
	if p.inner != nil {
		p.inner.finish(out)
	}
}

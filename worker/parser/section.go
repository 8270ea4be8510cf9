package parser

import "strings"

// section is a notation in which calls stand in a section of their own, each
// with a header that ends in a mark and its arguments as JSON behind it.
type section struct {
	open, shut         string // of the section
	callOpen, callShut string
	header             string // the mark between a header and its arguments
	name               func(header string) string
}

const deepseekSep = "<｜tool▁sep｜>"

var (
	// <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{…}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
	deepseekV3 = section{
		open: "<｜tool▁calls▁begin｜>", shut: "<｜tool▁calls▁end｜>", callOpen: "<｜tool▁call▁begin｜>", callShut: "\n```<｜tool▁call▁end｜>",
		header: "\n```json\n", name: func(h string) string {
			_, name, _ := strings.Cut(h, deepseekSep)
			return name
		},
	}
	// <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{…}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
	deepseekV31 = section{
		open: "<｜tool▁calls▁begin｜>", shut: "<｜tool▁calls▁end｜>", callOpen: "<｜tool▁call▁begin｜>", callShut: "<｜tool▁call▁end｜>",
		header: deepseekSep, name: func(h string) string { return h },
	}
	// <|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{…}<|tool_call_end|><|tool_calls_section_end|>
	kimiK2 = section{
		open: "<|tool_calls_section_begin|>", shut: "<|tool_calls_section_end|>", callOpen: "<|tool_call_begin|>", callShut: "<|tool_call_end|>",
		header: "<|tool_call_argument_begin|>", name: func(h string) string {
			h = strings.TrimPrefix(h, "functions.")
			if i := strings.LastIndexByte(h, ':'); i >= 0 {
				h = h[:i]
			}
			return h
		},
	}
)

// sectionParser reads such calls.
type sectionParser struct {
	section
	state sectionState
	held  string
	space []byte // of the arguments: theirs if more of them comes
}

type sectionState int

const (
	sectionText sectionState = iota
	sectionCalls
	sectionHeader
	sectionArguments
)

func newSection(s section) *sectionParser { return &sectionParser{section: s} }

func (p *sectionParser) add(text string, out *output) {
	p.held += text
	for p.advance(out) {
	}
}

// advance takes one step. It reports false while more text is needed.
func (p *sectionParser) advance(out *output) bool {
	switch p.state {
	case sectionText:
		before, rest, found := cut(p.held, p.open)
		out.content(before)
		p.held = rest
		if found {
			p.state = sectionCalls
		}
		return found
	case sectionCalls:
		_, marker, rest := cutAny(p.held, p.callOpen, p.shut)
		p.held = rest
		switch marker {
		case p.callOpen:
			p.state = sectionHeader
		case p.shut:
			p.state = sectionText
		}
		return marker != ""
	case sectionHeader:
		header, rest, found := strings.Cut(p.held, p.section.header)
		name := strings.TrimSpace(p.name(header))
		switch {
		case !found && len(p.held) <= maxCoderHeader:
			return false
		case !found || name == "" || strings.ContainsAny(name, "\n<"):
			out.content(p.open + p.callOpen)
			p.state = sectionText
			return true
		}
		out.begin(name)
		p.held, p.state = strings.TrimLeft(rest, " \t\r\n"), sectionArguments
	case sectionArguments:
		return p.arguments(out)
	}
	return true
}

// arguments hands out what certainly belongs to them. Space around them is
// left out.
func (p *sectionParser) arguments(out *output) bool {
	before, rest, found := cut(p.held, p.callShut)
	if text := strings.TrimRight(before, " \t\r\n"); text != "" {
		out.arguments(string(p.space))
		out.arguments(text)
		p.space, before = p.space[:0], before[len(text):]
	}
	p.space, p.held = append(p.space, before...), rest
	if found {
		p.space, p.state = p.space[:0], sectionCalls
	}
	return found
}

func (p *sectionParser) finish(out *output) {
	switch p.state {
	case sectionText:
		out.content(p.held)
	case sectionHeader:
		out.content(p.open + p.callOpen + p.held)
	}
	p.held = ""
}

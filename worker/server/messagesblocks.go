package server

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// textBlock, thinkingBlock and toolBlock are the blocks of an answer.
type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type toolBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type messagesUsage struct {
	Input   int  `json:"input_tokens"`
	Output  int  `json:"output_tokens"`
	Written *int `json:"cache_creation_input_tokens,omitempty"`
	Cached  *int `json:"cache_read_input_tokens,omitempty"`
}

type messagesAnswer struct {
	ID           string        `json:"id"`
	Type         string        `json:"type"`
	Role         string        `json:"role"`
	Content      []any         `json:"content"`
	Model        string        `json:"model"`
	StopReason   *string       `json:"stop_reason"`
	StopSequence *string       `json:"stop_sequence"`
	Usage        messagesUsage `json:"usage"`
}

// blocks makes an answer's content blocks of what the model says, one open at
// a time, and tells of them in the API's order.
type blocks struct {
	tell func(kind string, fields map[string]any) error
	seed string // what the thoughts' signatures are made of
	done []any

	open string          // kind of the open block; "": none
	text strings.Builder // of it: text, thinking, or a call's arguments
	call toolBlock
	nth  int // of the calls, the open one
}

// add takes what one token released.
func (b *blocks) add(d chatDelta) error {
	if d.Reasoning != nil {
		if err := b.say("thinking", *d.Reasoning); err != nil {
			return err
		}
	}
	if d.Content != nil {
		if err := b.say("text", *d.Content); err != nil {
			return err
		}
	}
	for _, c := range d.ToolCalls {
		if err := b.calls(&c); err != nil {
			return err
		}
	}
	return nil
}

// start opens a block.
func (b *blocks) start(kind string, block any) error {
	b.open = kind
	b.text.Reset()
	return b.tell("content_block_start", map[string]any{"index": len(b.done), "content_block": block})
}

// delta adds to the open block.
func (b *blocks) delta(kind, field, more string) error {
	if more == "" {
		return nil
	}
	b.text.WriteString(more)
	return b.tell("content_block_delta", map[string]any{"index": len(b.done), "delta": map[string]string{"type": kind, field: more}})
}

// say adds text to a block, which is opened where it is not.
func (b *blocks) say(kind, text string) error {
	if b.open != kind {
		if err := b.shut(); err != nil {
			return err
		}
		var block any = textBlock{Type: kind}
		if kind == "thinking" {
			block = thinkingBlock{Type: kind}
		}
		if err := b.start(kind, block); err != nil {
			return err
		}
	}
	return b.delta(kind+"_delta", kind, text)
}

// calls adds a piece of a call.
func (b *blocks) calls(d *toolDelta) error {
	if b.open != "tool_use" || b.nth != d.Index {
		if err := b.shut(); err != nil {
			return err
		}
		b.nth = d.Index
		b.call = toolBlock{Type: "tool_use", ID: "toolu_" + strings.TrimPrefix(d.ID, callPrefix), Name: d.Function.Name, Input: json.RawMessage("{}")}
		if err := b.start("tool_use", b.call); err != nil {
			return err
		}
	}
	return b.delta("input_json_delta", "partial_json", value(d.Function.Arguments, ""))
}

// signature is what clients want to stand at the end of thoughts, and send back
// with them. Nobody reads it here.
func (b *blocks) signature() string {
	return fmt.Sprintf("%016x%016x", xxhash.Sum64String(b.seed), xxhash.Sum64String(fmt.Sprintf("%s/%d", b.seed, len(b.done))))
}

// shut closes the open block.
func (b *blocks) shut() error {
	switch b.open {
	case "":
		return nil
	case "tool_use":
		if input := []byte(b.text.String()); json.Valid(input) { // else it was cut by max_tokens
			b.call.Input = input
		}
		b.done = append(b.done, b.call)
	case "thinking":
		signature := b.signature()
		b.done = append(b.done, thinkingBlock{Type: b.open, Thinking: b.text.String(), Signature: signature})
		delta := map[string]string{"type": "signature_delta", "signature": signature}
		if err := b.tell("content_block_delta", map[string]any{"index": len(b.done) - 1, "delta": delta}); err != nil {
			return err
		}
	default:
		b.done = append(b.done, textBlock{Type: b.open, Text: b.text.String()})
	}
	b.open = ""
	return b.tell("content_block_stop", map[string]any{"index": len(b.done) - 1})
}

// finish closes what is open. An answer that says nothing is an empty text.
func (b *blocks) finish() error {
	if b.open == "" && len(b.done) == 0 {
		if err := b.say("text", ""); err != nil {
			return err
		}
	}
	return b.shut()
}

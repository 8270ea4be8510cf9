package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Decode returns the text of tokens. Unknown ids add nothing. With
// skipSpecial, special tokens are left out.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	tokens := make([]string, 0, len(ids))
	for _, id := range ids {
		if id < 0 || int(id) >= len(t.spelled) || skipSpecial && t.special[id] {
			continue
		}
		tokens = append(tokens, t.spelled[id])
	}
	var out strings.Builder
	c := t.chain.start(true)
	for _, tok := range tokens {
		c.push(tok, &out)
	}
	c.end(&out)
	return out.String()
}

// A decodeStep is one of the decoders that a file chains. Its steps work on
// tokens one after the other; begin returns the state for one text.
type decodeStep interface {
	// begin returns a new stage. A whole text is known to its end, so a
	// stage may wait for it; a stream must hand out what it can.
	begin(whole bool) decodeStage
	// bytes returns what a token that is not the first adds to a text.
	bytes(token []byte) []byte
}

// A decodeStage is a decodeStep at work on one text.
type decodeStage interface {
	push(token string, emit func(string))
	end(emit func(string))
}

// decoderChain is the part "decoder" of a file.
type decoderChain struct {
	steps []decodeStep
	fused bool // Fuse was met: what follows sees one text
}

// tokenBytes returns the bytes that a token adds to a text.
func (c decoderChain) tokenBytes(token string) []byte {
	b := []byte(token)
	for _, s := range c.steps {
		b = s.bytes(b)
	}
	return b
}

// runningChain is a decoderChain at work on one text.
type runningChain struct{ stages []decodeStage }

func (c decoderChain) start(whole bool) *runningChain {
	r := &runningChain{}
	for _, s := range c.steps {
		r.stages = append(r.stages, s.begin(whole))
	}
	return r
}

// push hands a token to the first stage, and what comes out to the next.
func (r *runningChain) push(token string, out *strings.Builder) {
	r.feed(0, token, out)
}

func (r *runningChain) feed(stage int, token string, out *strings.Builder) {
	if stage == len(r.stages) {
		out.WriteString(token)
		return
	}
	r.stages[stage].push(token, func(s string) { r.feed(stage+1, s, out) })
}

// end tells every stage, in order, that no token follows.
func (r *runningChain) end(out *strings.Builder) {
	for i, s := range r.stages {
		s.end(func(tok string) { r.feed(i+1, tok, out) })
	}
}

// A Decoder turns a stream of tokens into text, piece by piece. The pieces
// never hold a part of a character: what is incomplete waits for the next
// token. Their sum is what Decode returns for all tokens, with one exception:
// where tokens of single bytes (byte fallback) form no character, a stream
// cannot take back what it said, and marks only the bytes that are wrong.
type Decoder struct {
	t           *Tokenizer
	skipSpecial bool
	chain       *runningChain
	held        []byte // byte-level only: the beginning of a character
	plain       bool   // the chain is ByteLevel alone
}

// NewDecoder returns a decoder for one stream. With skipSpecial, special
// tokens are left out.
func (t *Tokenizer) NewDecoder(skipSpecial bool) *Decoder {
	d := &Decoder{t: t, skipSpecial: skipSpecial}
	if len(t.chain.steps) == 1 {
		_, d.plain = t.chain.steps[0].(decodeByteLevel)
	}
	if !d.plain {
		d.chain = t.chain.start(false)
	}
	return d
}

// Add takes the next token and returns the text that is complete with it,
// which may be empty. Unknown ids add nothing.
func (d *Decoder) Add(id int32) string {
	if id < 0 || int(id) >= len(d.t.spelled) || d.skipSpecial && d.t.special[id] {
		return ""
	}
	if d.plain {
		return d.addBytes(d.t.bytes[id])
	}
	var out strings.Builder
	d.chain.push(d.t.spelled[id], &out)
	return out.String()
}

func (d *Decoder) addBytes(b []byte) string {
	if len(d.held) == 0 && utf8.Valid(b) {
		return string(b)
	}
	d.held = append(d.held, b...)
	n := len(d.held) - incomplete(d.held)
	s := string(appendValid(nil, d.held[:n], true))
	d.held = append(d.held[:0], d.held[n:]...)
	return s
}

// Flush returns what is left when the stream has ended: U+FFFD for a
// character that was not completed. The decoder is then ready for another
// stream.
func (d *Decoder) Flush() string {
	if d.plain {
		s := string(appendValid(nil, d.held, true))
		d.held = d.held[:0]
		return s
	}
	var out strings.Builder
	d.chain.end(&out)
	d.chain = d.t.chain.start(false)
	return out.String()
}

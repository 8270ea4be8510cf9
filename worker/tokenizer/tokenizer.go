package tokenizer

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// A Tokenizer turns text into token ids and back.
type Tokenizer struct {
	added      addedTokens
	normalizer normalizer   // nil: none
	splitter   preTokenizer // nil: the text is one piece
	minds      bool         // the splitter minds where a text begins
	model      model
	post       *postProcessor // nil: none
	chain      decoderChain

	ids     map[string]int32 // every token as the file spells it
	spelled []string         // by id; "" where the id is not used
	bytes   [][]byte         // by id: what the token adds to a text
	special []bool           // by id

	scratch sync.Pool // *scratch
}

// EncodeOptions say how Encode treats what is not plain text.
type EncodeOptions struct {
	// AddSpecial runs the post-processor, which puts tokens such as <s>
	// around the text. A rendered chat template already has them.
	AddSpecial bool

	// ParseSpecial reads special tokens in the text as tokens. Without it
	// they are encoded as the characters they consist of. Added tokens that
	// the file does not call special, such as <think>, are always read.
	ParseSpecial bool
}

// A Segment is a part of a rendered chat template.
type Segment struct {
	Text string

	// Content says that the text came from outside: messages, tools,
	// documents. Special tokens in it are not read.
	Content bool
}

// Encode returns the tokens of text. Bytes that are not UTF-8 become U+FFFD.
func (t *Tokenizer) Encode(text string, o EncodeOptions) []int32 {
	return t.EncodeSegments([]Segment{{Text: text, Content: !o.ParseSpecial}}, o)
}

// EncodeSegments returns the tokens of the segments' text as a whole: a word
// may begin in one segment and end in the next. Special tokens are read where
// they lie outside content, and with o.ParseSpecial everywhere.
func (t *Tokenizer) EncodeSegments(segments []Segment, o EncodeOptions) []int32 {
	text, closed := joinSegments(segments, o.ParseSpecial)
	ids := t.encode(make([]int32, 0, len(text)/3+8), text, closed)
	if o.AddSpecial && t.post != nil {
		ids = t.post.single(ids)
	}
	return ids
}

// EncodePair returns the tokens of two texts as the post-processor joins
// them for a cross-encoder, and the type of each token (0 or 1). Special
// tokens in the texts are not read.
func (t *Tokenizer) EncodePair(a, b string) (ids, types []int32) {
	first := t.Encode(a, EncodeOptions{})
	second := t.Encode(b, EncodeOptions{})
	return t.post.pair(first, second)
}

// PairTypes are the types that EncodePair may give.
func (t *Tokenizer) PairTypes() []int32 {
	_, types := t.post.pair([]int32{0}, []int32{0})
	slices.Sort(types)
	return slices.Compact(types)
}

// span is a range of bytes [from, to) of a text.
type span struct{ from, to int }

// joinSegments returns the whole text and the ranges in which special tokens
// are not read.
func joinSegments(segments []Segment, parseAll bool) (string, []span) {
	if len(segments) == 1 {
		text := validUTF8(segments[0].Text)
		if segments[0].Content && !parseAll {
			return text, []span{{0, len(text)}}
		}
		return text, nil
	}
	var whole strings.Builder
	var closed []span
	for _, s := range segments {
		from := whole.Len()
		whole.WriteString(validUTF8(s.Text))
		if !s.Content || parseAll || from == whole.Len() {
			continue
		}
		if n := len(closed); n > 0 && closed[n-1].to == from {
			closed[n-1].to = whole.Len()
			continue
		}
		closed = append(closed, span{from, whole.Len()})
	}
	return whole.String(), closed
}

// scratch is the working memory of one Encode.
type scratch struct {
	ids     []int32
	symbols []symbol
	heap    []merge
	ranks   []int32
	lattice []latticeNode
	buffer  []byte
}

func (t *Tokenizer) encode(ids []int32, text string, closed []span) []int32 {
	sc, _ := t.scratch.Get().(*scratch)
	if sc == nil {
		sc = &scratch{}
	}
	defer t.scratch.Put(sc)
	emit := func(p piece) {
		if p.text != "" {
			ids = t.model.encode(ids, p.text, sc)
		}
	}
	normalized := func(p piece) {
		if t.splitter == nil {
			emit(p)
			return
		}
		t.splitter.split(p, emit)
	}
	token := func(id int32) { ids = append(ids, id) }
	t.added.raw.split(text, closed, token, func(s string, from int) {
		first := from == 0
		if t.normalizer != nil {
			first = first && !t.losesFirst(s)
			s = t.normalizer.normalize(s)
		}
		// An added token that is looked for in normalised text cannot be
		// placed within segments any more, so one rule holds for all of s.
		t.added.normalized.split(s, within(closed, from, s), token, func(s string, inner int) {
			if s != "" {
				normalized(piece{text: s, first: first && inner == 0})
			}
		})
	})
	return ids
}

// losesFirst reports whether the normaliser drops the first character of s.
// The library then takes the rest for what does not begin the text, which
// matters to Metaspace only.
func (t *Tokenizer) losesFirst(s string) bool {
	if !t.minds || s == "" {
		return false
	}
	_, n := utf8.DecodeRuneInString(s)
	return t.normalizer.normalize(s[:n]) == ""
}

// within returns the whole of s as closed if the text at from is.
func within(closed []span, from int, s string) []span {
	for _, c := range closed {
		if from < c.to {
			if from >= c.from {
				return []span{{0, len(s)}}
			}
			break
		}
	}
	return nil
}

// Size returns the number of ids: one more than the greatest.
func (t *Tokenizer) Size() int { return len(t.spelled) }

// TokenID returns the id of the token that the file spells s. Byte-level
// vocabularies spell a leading space "Ġ", SentencePiece ones "▁".
func (t *Tokenizer) TokenID(s string) (int32, bool) {
	id, ok := t.ids[s]
	return id, ok
}

// Token returns the spelling of a token in the file, "" for an unknown id.
func (t *Tokenizer) Token(id int32) string {
	if id < 0 || int(id) >= len(t.spelled) {
		return ""
	}
	return t.spelled[id]
}

// TokenBytes returns the bytes that a token adds to a text, nil for an
// unknown id. They may be part of a character. The caller must not change
// them.
func (t *Tokenizer) TokenBytes(id int32) []byte {
	if id < 0 || int(id) >= len(t.bytes) {
		return nil
	}
	return t.bytes[id]
}

// IsSpecial reports whether a token is special: a sign to the model that is
// not part of the text.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return id >= 0 && int(id) < len(t.special) && t.special[id]
}

// validUTF8 returns s with U+FFFD for each maximal part that is not UTF-8,
// as Python decodes with errors="replace".
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string(appendValid(nil, []byte(s), true))
}

package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// loadModel reads the part "model" and returns the vocabulary that it holds.
func (t *Tokenizer) loadModel(raw json.RawMessage, byteLevel bool) (map[string]int32, error) {
	var k kind
	if err := decodeField(raw, "model", &k); err != nil {
		return nil, err
	}
	if k.Type == "" {
		k.Type = guessModel(raw)
	}
	if byteLevel && k.Type != "BPE" {
		return nil, fmt.Errorf("tokenizer.json: pre_tokenizer: ByteLevel goes with a BPE model only; the model is %s", k.Type)
	}
	switch k.Type {
	case "BPE":
		m, vocab, err := loadBPE(raw, byteLevel)
		t.model = m
		return vocab, err
	case "Unigram":
		m, vocab, err := loadUnigram(raw)
		t.model = m
		return vocab, err
	case "WordPiece":
		m, vocab, err := loadWordPiece(raw)
		t.model = m
		return vocab, err
	case "WordLevel":
		m, vocab, err := loadWordList(raw)
		t.model = m
		return vocab, err
	}
	return nil, unsupported("model", k.Type, "BPE, Unigram, WordPiece, WordLevel")
}

// guessModel names the model of old files, which do not.
func guessModel(raw json.RawMessage) string {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return ""
	}
	switch {
	case m["merges"] != nil:
		return "BPE"
	case m["max_input_chars_per_word"] != nil:
		return "WordPiece"
	case m["unk_id"] != nil:
		return "Unigram"
	}
	return ""
}

// bpeFile is the part "model" of type BPE.
type bpeFile struct {
	Dropout      *float64         `json:"dropout"`
	UnkToken     *string          `json:"unk_token"`
	Prefix       *string          `json:"continuing_subword_prefix"`
	Suffix       *string          `json:"end_of_word_suffix"`
	FuseUnk      bool             `json:"fuse_unk"`
	ByteFallback bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"`
	Vocab        map[string]int32 `json:"vocab"`
	Merges       mergeList        `json:"merges"`
}

// mergeList takes both spellings of merges: "a b" and ["a", "b"].
type mergeList [][2]string

func (m *mergeList) UnmarshalJSON(data []byte) error {
	rest := bytes.TrimLeft(data, "[ \t\r\n")
	if bytes.Count(data[:len(data)-len(rest)], []byte("[")) == 2 {
		var pairs [][]string
		if err := json.Unmarshal(data, &pairs); err != nil {
			return err
		}
		*m = make(mergeList, len(pairs))
		for i, p := range pairs {
			if len(p) != 2 {
				return fmt.Errorf("merges[%d] has %d parts; a merge has 2", i, len(p))
			}
			(*m)[i] = [2]string{p[0], p[1]}
		}
		return nil
	}
	var lines []string
	if err := json.Unmarshal(data, &lines); err != nil {
		return err
	}
	*m = make(mergeList, len(lines))
	for i, line := range lines {
		a, b, ok := strings.Cut(line, " ")
		if !ok || strings.Contains(b, " ") {
			return fmt.Errorf("merges[%d] is %q; a merge is two tokens with one space between", i, clip(line))
		}
		(*m)[i] = [2]string{a, b}
	}
	return nil
}

func loadBPE(raw json.RawMessage, byteLevel bool) (*bpe, map[string]int32, error) {
	var f bpeFile
	if err := decodeField(raw, "model", &f); err != nil {
		return nil, nil, err
	}
	b, err := newBPE(f, byteLevel)
	return b, f.Vocab, err
}

func newBPE(f bpeFile, byteLevel bool) (*bpe, error) {
	if len(f.Vocab) == 0 || len(f.Vocab) > maxTokens {
		return nil, fmt.Errorf("tokenizer.json: model.vocab has %d tokens; 1 to %d are allowed", len(f.Vocab), maxTokens)
	}
	if len(f.Merges) > maxMerges {
		return nil, fmt.Errorf("tokenizer.json: model.merges has %d entries; at most %d are allowed", len(f.Merges), maxMerges)
	}
	if f.Dropout != nil && *f.Dropout != 0 {
		return nil, fmt.Errorf("tokenizer.json: model.dropout is %g; a tokenizer that draws lots cannot serve, set it to null", *f.Dropout)
	}
	b := &bpe{
		byteLevel: byteLevel, byteFallback: f.ByteFallback, whole: f.IgnoreMerges,
		fuseUnknown: f.FuseUnk, prefix: deref(f.Prefix), suffix: deref(f.Suffix), cache: newWordCache(),
	}
	if byteLevel && (b.prefix != "" || b.suffix != "") {
		return nil, fmt.Errorf("tokenizer.json: model has continuing_subword_prefix or end_of_word_suffix, which does not go with ByteLevel")
	}
	if f.UnkToken != nil && *f.UnkToken != "" {
		id, ok := f.Vocab[*f.UnkToken]
		if !ok {
			return nil, fmt.Errorf("tokenizer.json: model.unk_token %q is not in model.vocab", clip(*f.UnkToken))
		}
		b.unknown, b.hasUnknown = id, true
	}
	if err := b.readVocab(f.Vocab); err != nil {
		return nil, err
	}
	return b, b.readMerges(f.Vocab, f.Merges)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// readVocab keys the vocabulary by what stands in a text, and finds the
// tokens of single bytes.
func (b *bpe) readVocab(vocab map[string]int32) error {
	b.vocab = vocab
	if b.byteLevel {
		b.vocab = make(map[string]int32, len(vocab))
	}
	for i := range b.bytes {
		b.bytes[i] = -1
	}
	for s, id := range vocab {
		if len(s) > maxToken {
			return fmt.Errorf("tokenizer.json: model.vocab: a token has %d bytes; at most %d are allowed", len(s), maxToken)
		}
		if b.byteLevel {
			raw, ok := unspellBytes(s)
			if !ok {
				continue // no text leads to it
			}
			b.vocab[string(raw)] = id
			if len(raw) == 1 {
				b.bytes[raw[0]] = id
			}
			continue
		}
		if c, ok := byteToken(s); ok {
			b.bytes[c] = id
		}
	}
	return nil
}

// byteToken returns the byte of a token spelled <0x0A>.
func byteToken(s string) (byte, bool) {
	if len(s) != 6 || s[:3] != "<0x" || s[5] != '>' {
		return 0, false
	}
	var b byte
	for _, c := range []byte(s[3:5]) {
		switch {
		case c >= '0' && c <= '9':
			b = b<<4 | (c - '0')
		case c >= 'A' && c <= 'F':
			b = b<<4 | (c - 'A' + 10)
		default:
			return 0, false
		}
	}
	return b, true
}

// readMerges numbers the merges. Both halves and the result must be tokens.
func (b *bpe) readMerges(vocab map[string]int32, merges mergeList) error {
	b.merges = newMergeTable(len(merges))
	for rank, m := range merges {
		left, okLeft := vocab[m[0]]
		right, okRight := vocab[m[1]]
		whole := m[0] + strings.TrimPrefix(m[1], b.prefix)
		id, ok := vocab[whole]
		if !okLeft || !okRight || !ok {
			return fmt.Errorf("tokenizer.json: model.merges[%d]: %q and %q give %q; all three must be in model.vocab", rank, clip(m[0]), clip(m[1]), clip(whole))
		}
		b.merges.add(left, right, int32(rank), id)
	}
	return nil
}

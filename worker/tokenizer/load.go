package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Bounds of what Load takes. The largest vocabularies in use have 262 144
// tokens and files of 35 MB.
const (
	maxFile   = 256 << 20
	maxTokens = 4 << 20
	maxMerges = 8 << 20
	maxToken  = 64 << 10 // bytes of one token
	maxDepth  = 64       // nesting of the file
)

// file is tokenizer.json.
type file struct {
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         json.RawMessage `json:"model"`
}

// Load reads the contents of a tokenizer.json. Its errors name the field, what
// was found there and what is allowed.
func Load(data []byte) (*Tokenizer, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("tokenizer.json: the file has %d bytes; at most %d are allowed", len(data), maxFile)
	}
	if err := checkDepth(data); err != nil {
		return nil, err
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("tokenizer.json: cannot read the file: %w", err)
	}
	if isNull(f.Model) {
		return nil, fmt.Errorf("tokenizer.json: model is missing")
	}
	t := &Tokenizer{ids: map[string]int32{}}
	var err error
	var normal normalForm
	if t.normalizer, normal, err = loadNormalizer(f.Normalizer); err != nil {
		return nil, err
	}
	var pre preTokenized
	if t.splitter, pre, err = loadPreTokenizer(f.PreTokenizer, normal); err != nil {
		return nil, err
	}
	t.minds = pre.minds
	vocab, err := t.loadModel(f.Model, pre.byteLevel)
	if err != nil {
		return nil, err
	}
	if err := t.number(vocab, f.AddedTokens); err != nil {
		return nil, err
	}
	if t.added, err = newAddedTokens(f.AddedTokens, t.normalizer); err != nil {
		return nil, err
	}
	if t.post, err = loadPostProcessor(f.PostProcessor, t.Size()); err != nil {
		return nil, err
	}
	if t.chain, err = loadDecoder(f.Decoder); err != nil {
		return nil, err
	}
	t.spellOut()
	return t, nil
}

// isNull reports whether an optional part of the file is absent.
func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}

// checkDepth refuses a file that nests deeper than any tokenizer does, before
// a parser descends into it.
func checkDepth(data []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("tokenizer.json: byte %d: nested deeper than %d levels", i, maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// kind is the part of every component that says which one it is.
type kind struct {
	Type string `json:"type"`
}

// decodeField decodes a component into v and names the field in the error.
func decodeField(raw json.RawMessage, field string, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("tokenizer.json: cannot read %s: %w", field, err)
	}
	return nil
}

// unsupported is the error for a component that this package does not have.
func unsupported(field, found, known string) error {
	return fmt.Errorf("tokenizer.json: %s: type %q is not supported; supported are %s", field, found, known)
}

// number gives every token its place by id. Two tokens with one id, and ids
// far beyond the number of tokens, are refused: tables are sized by the
// greatest id.
func (t *Tokenizer) number(vocab map[string]int32, added []addedToken) error {
	size := int32(0)
	count := len(vocab) + len(added)
	check := func(field, token string, id int32) error {
		if id < 0 || int(id) >= maxTokens || int(id) > 4*count+1024 {
			return fmt.Errorf("tokenizer.json: %s: token %q has id %d; ids lie from 0 to a little above the number of tokens, which is %d", field, clip(token), id, count)
		}
		size = max(size, id+1)
		return nil
	}
	for token, id := range vocab {
		if err := check("model.vocab", token, id); err != nil {
			return err
		}
	}
	for i, a := range added {
		if err := check(fmt.Sprintf("added_tokens[%d]", i), a.Content, a.ID); err != nil {
			return err
		}
	}
	t.spelled = make([]string, size)
	t.special = make([]bool, size)
	taken := make([]bool, size)
	place := func(field, token string, id int32) error {
		if taken[id] && t.spelled[id] != token {
			return fmt.Errorf("tokenizer.json: %s: id %d belongs to both %q and %q", field, id, clip(t.spelled[id]), clip(token))
		}
		taken[id] = true
		t.spelled[id] = token
		t.ids[token] = id
		return nil
	}
	for token, id := range vocab {
		if err := place("model.vocab", token, id); err != nil {
			return err
		}
	}
	for i, a := range added {
		if err := place(fmt.Sprintf("added_tokens[%d]", i), a.Content, a.ID); err != nil {
			return err
		}
		t.special[a.ID] = a.Special
	}
	return nil
}

// spellOut fills in the bytes that each token adds to a text.
func (t *Tokenizer) spellOut() {
	t.bytes = make([][]byte, len(t.spelled))
	for id, s := range t.spelled {
		t.bytes[id] = t.chain.tokenBytes(s)
	}
}

// clip shortens a token for an error message.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}

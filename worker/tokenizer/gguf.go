package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// GGUF is the values of a GGUF file by key, as *gguf.File has them.
type GGUF interface {
	Has(key string) bool
	String(key string) (string, error)
	Bool(key string, absent bool) (bool, error)
	Int(key string, absent int) (int, error)
	Strings(key string) ([]string, error)
	Integers(key string) ([]int32, error)
	Floats(key string) ([]float32, error)
}

// The kinds of tokens of a GGUF file.
const (
	ggufNormal = iota + 1
	ggufUnknown
	ggufControl
	ggufUser
	ggufUnused
	ggufByte
)

// ggufSplits are the pre-tokenizers of a GGUF file by name: the patterns of the
// tokenizer.json that the file was made of, one after the other.
var ggufSplits = map[string]ggufSplit{
	"default": {patterns: []string{`[\p{P}\$\+<=>\^~\|]+`,
		ggufWords, `\p{N}+`, `[0-9][0-9][0-9]`}},
	"gpt-2":            {patterns: []string{ggufWords}},
	"smollm":           {patterns: []string{`\p{N}`, ggufWords}},
	"llama-bpe":        ggufLlama,
	"llama3":           ggufLlama,
	"llama-v3":         ggufLlama,
	"qwen2":            ggufQwen,
	"deepseek-r1-qwen": ggufQwen,
	"tekken": {whole: true, patterns: []string{`[^\r\n\p{L}\p{N}]?` + upperLetter + "*" + lowerLetter + `+|[^\r\n\p{L}\p{N}]?` + upperLetter + "+" + lowerLetter +
		`*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + tailLines}},
}

// ggufWords is GPT-2's pattern.
const ggufWords = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

var ggufLlama = ggufSplit{whole: true, bos: true,
	patterns: []string{foldedAll + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + tailLines}}

// ggufSplit is a pre-tokenizer and what goes with it.
type ggufSplit struct {
	patterns []string
	composed bool // Unicode's form C first
	whole    bool // a piece that is itself a token is that token
	bos      bool // texts begin with the token that begins, unless the file says otherwise
}

var ggufQwen = ggufSplit{composed: true,
	patterns: []string{foldedAll + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + tailLines}}

// ggufVocabulary is what a GGUF file says of its tokens.
type ggufVocabulary struct {
	file   GGUF
	tokens []string
	kinds  []int32
	scores []float32
	merges []string
}

// LoadGGUF reads the tokenizer of a GGUF file: byte-level BPE ("gpt2"), or
// SentencePiece's BPE ("llama"). Its errors name the key.
func LoadGGUF(f GGUF) (*Tokenizer, error) {
	t, err := loadGGUF(f)
	if err != nil {
		// What both kinds of files have in common is checked by the same code.
		said := strings.NewReplacer("tokenizer.json: model.vocab", "tokenizer.ggml.tokens", "tokenizer.json: added_tokens", "tokenizer.ggml.tokens: control or user-defined",
			"tokenizer.json: model.merges", "tokenizer.ggml.merges", "model.vocab", "tokenizer.ggml.tokens").Replace(err.Error())
		return nil, errors.New(said)
	}
	return t, nil
}

func loadGGUF(f GGUF) (*Tokenizer, error) {
	v := &ggufVocabulary{file: f}
	if err := v.read(); err != nil {
		return nil, err
	}
	kind, err := f.String("tokenizer.ggml.model")
	if err != nil {
		return nil, err
	}
	switch kind {
	case "gpt2":
		return v.byteLevel()
	case "llama":
		return v.pieces()
	}
	return nil, fmt.Errorf("tokenizer.ggml.model %.40q is not supported; supported are gpt2 and llama", kind)
}

// read takes the lists, which must be of the same length.
func (v *ggufVocabulary) read() (err error) {
	if v.tokens, err = v.file.Strings("tokenizer.ggml.tokens"); err != nil {
		return err
	}
	if v.kinds, err = v.file.Integers("tokenizer.ggml.token_type"); err != nil {
		return err
	}
	if v.scores, err = v.file.Floats("tokenizer.ggml.scores"); err != nil {
		return err
	}
	if v.merges, err = v.file.Strings("tokenizer.ggml.merges"); err != nil {
		return err
	}
	n := len(v.tokens)
	if n == 0 || n > maxTokens {
		return fmt.Errorf("tokenizer.ggml.tokens has %d entries; 1 to %d are allowed", n, maxTokens)
	}
	if v.kinds == nil {
		v.kinds = slices.Repeat([]int32{ggufNormal}, n)
	}
	if len(v.kinds) != n {
		return fmt.Errorf("tokenizer.ggml.token_type has %d entries for %d tokens", len(v.kinds), n)
	}
	for i, kind := range v.kinds {
		if kind < ggufNormal || kind > ggufByte {
			return fmt.Errorf("tokenizer.ggml.token_type[%d] is %d; want 1 to 6", i, kind)
		}
		if !utf8.ValidString(v.tokens[i]) {
			return fmt.Errorf("tokenizer.ggml.tokens[%d] is not UTF-8", i)
		}
	}
	return nil
}

// split divides the tokens: those that text becomes, and those that are cut out
// of it first. All of the former that have an id are in all.
func (v *ggufVocabulary) split() (vocab, all map[string]int32, added []addedToken, err error) {
	vocab, all = make(map[string]int32, len(v.tokens)), make(map[string]int32, len(v.tokens))
	seen := make(map[string]int, len(v.tokens))
	for i, token := range v.tokens {
		if first, ok := seen[token]; ok {
			return nil, nil, nil, fmt.Errorf("tokenizer.ggml.tokens[%d] is %q, as is tokenizer.ggml.tokens[%d]", i, clip(token), first)
		}
		seen[token] = i
		switch v.kinds[i] {
		case ggufControl:
			added = append(added, addedToken{ID: int32(i), Content: token, Special: true})
			continue
		case ggufUser: // merges may lead to it, too
			added = append(added, addedToken{ID: int32(i), Content: token})
		case ggufUnknown:
			added = append(added, addedToken{ID: int32(i), Content: token, Special: true})
		}
		all[token] = int32(i)
		if v.kinds[i] != ggufUnused {
			vocab[token] = int32(i)
		}
	}
	return vocab, all, added, nil
}

// byteLevel is BPE over bytes.
func (v *ggufVocabulary) byteLevel() (*Tokenizer, error) {
	name, err := v.file.String("tokenizer.ggml.pre")
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = "default"
	}
	how, ok := ggufSplits[name]
	if !ok {
		return nil, fmt.Errorf("tokenizer.ggml.pre %.40q is not supported; supported are %s", name, strings.Join(slices.Sorted(maps.Keys(ggufSplits)), ", "))
	}
	if v.merges == nil {
		return nil, errors.New("tokenizer.ggml.merges is missing")
	}
	vocab, all, added, err := v.split()
	if err != nil {
		return nil, err
	}
	model := bpeFile{Vocab: vocab, IgnoreMerges: how.whole, Merges: make(mergeList, len(v.merges))}
	for i, line := range v.merges {
		a, b, ok := strings.Cut(line, " ")
		if !ok || strings.Contains(b, " ") {
			return nil, fmt.Errorf("tokenizer.ggml.merges[%d] is %q; a merge is two tokens with one space between", i, clip(line))
		}
		model.Merges[i] = [2]string{a, b}
	}
	var splits []any
	for _, p := range how.patterns {
		splits = append(splits, map[string]any{"type": "Split", "pattern": map[string]string{"Regex": p}, "behavior": "Isolated"})
	}
	splits = append(splits, map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})
	parts := file{Decoder: []byte(`{"type":"ByteLevel"}`), AddedTokens: added}
	if how.composed {
		parts.Normalizer = []byte(`{"type":"NFC"}`)
	}
	if parts.PreTokenizer, err = json.Marshal(map[string]any{"type": "Sequence", "pretokenizers": splits}); err != nil {
		return nil, err
	}
	return v.assemble(parts, model, all, how.bos)
}

// longestPiece bounds the tokens of SentencePiece, whose merges are found by
// cutting each in two at every place.
const longestPiece = 256

// pieces is SentencePiece's BPE: the neighbours merge whose token has the
// greatest score. Characters that are no token become their bytes.
func (v *ggufVocabulary) pieces() (*Tokenizer, error) {
	if len(v.scores) != len(v.tokens) {
		return nil, fmt.Errorf("tokenizer.ggml.scores has %d entries for %d tokens", len(v.scores), len(v.tokens))
	}
	if v.file.Has("tokenizer.ggml.precompiled_charsmap") {
		return nil, errors.New("tokenizer.ggml.precompiled_charsmap does not go with tokenizer.ggml.model \"llama\"")
	}
	space, err := v.file.Bool("tokenizer.ggml.add_space_prefix", true)
	if err != nil {
		return nil, err
	}
	vocab, all, added, err := v.split()
	if err != nil {
		return nil, err
	}
	model := bpeFile{Vocab: vocab, ByteFallback: true, FuseUnk: true}
	for i, kind := range v.kinds {
		if kind == ggufUnknown {
			model.UnkToken = &v.tokens[i]
		}
	}
	parts := file{AddedTokens: added,
		Normalizer: []byte(`{"type":"Replace","pattern":{"String":" "},"content":"▁"}`),
		Decoder:    []byte(`{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"}]}`)}
	if space {
		parts.Normalizer = []byte(`{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]}`)
		parts.Decoder = []byte(`{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]}`)
	}
	t, err := v.assemble(parts, model, all, true)
	if err != nil {
		return nil, err
	}
	t.model.(*bpe).merges, err = v.scoredMerges(vocab)
	return t, err
}

// scoredMerges is every way in which two tokens give a third, ranked by the
// third's score.
func (v *ggufVocabulary) scoredMerges(vocab map[string]int32) (*mergeTable, error) {
	ranks := map[float32]int32{}
	for i, s := range v.scores {
		if math.IsNaN(float64(s)) {
			return nil, fmt.Errorf("tokenizer.ggml.scores[%d] is NaN", i)
		}
		ranks[s] = 0
	}
	sorted := make([]float32, 0, len(ranks))
	for s := range ranks {
		sorted = append(sorted, s)
	}
	slices.SortFunc(sorted, func(a, b float32) int {
		if a > b {
			return -1
		}
		return 1
	})
	for i, s := range sorted {
		ranks[s] = int32(i)
	}
	type found struct{ left, right, whole int32 }
	var merges []found
	for i, token := range v.tokens {
		if v.kinds[i] != ggufNormal {
			continue
		}
		if len(token) > longestPiece {
			return nil, fmt.Errorf("tokenizer.ggml.tokens[%d] has %d bytes; at most %d are allowed", i, len(token), longestPiece)
		}
		for at := range token {
			left, okLeft := vocab[token[:at]]
			right, okRight := vocab[token[at:]]
			if at > 0 && okLeft && okRight {
				merges = append(merges, found{left, right, int32(i)})
			}
		}
		if len(merges) > maxMerges {
			return nil, fmt.Errorf("tokenizer.ggml.tokens: more than %d merges", maxMerges)
		}
	}
	table := newMergeTable(len(merges))
	for _, m := range merges {
		table.add(m.left, m.right, ranks[v.scores[m.whole]], m.whole)
	}
	return table, nil
}

// assemble puts a tokenizer together as Load does.
func (v *ggufVocabulary) assemble(parts file, model bpeFile, all map[string]int32, bos bool) (*Tokenizer, error) {
	t := &Tokenizer{ids: map[string]int32{}}
	var err error
	var normal normalForm
	if t.normalizer, normal, err = loadNormalizer(parts.Normalizer); err != nil {
		return nil, err
	}
	var pre preTokenized
	if t.splitter, pre, err = loadPreTokenizer(parts.PreTokenizer, normal); err != nil {
		return nil, err
	}
	t.minds = pre.minds
	if t.model, err = newBPE(model, pre.byteLevel); err != nil {
		return nil, err
	}
	if err := t.number(all, parts.AddedTokens); err != nil {
		return nil, err
	}
	if t.added, err = newAddedTokens(parts.AddedTokens, t.normalizer); err != nil {
		return nil, err
	}
	if t.post, err = v.around(bos); err != nil {
		return nil, err
	}
	if t.chain, err = loadDecoder(parts.Decoder); err != nil {
		return nil, err
	}
	t.spellOut()
	return t, nil
}

// around is what stands around a text: the tokens that begin and end it, where
// the file asks for them. It is nil where there are none.
func (v *ggufVocabulary) around(bos bool) (*postProcessor, error) {
	before, err := v.marker("bos", bos)
	if err != nil {
		return nil, err
	}
	after, err := v.marker("eos", false)
	if err != nil || len(before)+len(after) == 0 {
		return nil, err
	}
	one := []templatePart{{sequence: -1, tokens: before}, {sequence: 0}, {sequence: -1, tokens: after}}
	second := []templatePart{{sequence: -1, tokens: before, kind: 1}, {sequence: 1, kind: 1}, {sequence: -1, tokens: after, kind: 1}}
	return &postProcessor{one: one, two: slices.Concat(one, second)}, nil
}

// marker is the token of a name if it is added to every text.
func (v *ggufVocabulary) marker(name string, absent bool) ([]int32, error) {
	yes, err := v.file.Bool("tokenizer.ggml.add_"+name+"_token", absent)
	if err != nil || !yes {
		return nil, err
	}
	key := "tokenizer.ggml." + name + "_token_id"
	if !v.file.Has(key) && !v.file.Has("tokenizer.ggml.add_"+name+"_token") {
		return nil, nil // by habit alone, and there is none
	}
	id, err := v.file.Int(key, -1)
	if err != nil {
		return nil, err
	}
	if id < 0 || id >= len(v.tokens) {
		return nil, fmt.Errorf("%s is %d; want the id of one of the %d tokens, since add_%s_token asks for it", key, id, len(v.tokens), name)
	}
	return []int32{int32(id)}, nil
}

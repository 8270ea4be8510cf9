package tokenizer

import (
	"encoding/json"
	"fmt"
)

// preTokenized is what Load must know of a pre-tokenizer.
type preTokenized struct {
	byteLevel bool // pieces are bytes, spelled in the vocabulary by byteSpelling
	minds     bool // it minds where a text begins
}

const knownPreTokenizers = "Sequence, Split, ByteLevel, Metaspace, BertPreTokenizer, Whitespace, WhitespaceSplit, Punctuation, Digits, CharDelimiterSplit"

// loadPreTokenizer reads the part "pre_tokenizer", which may be absent.
func loadPreTokenizer(raw json.RawMessage, form normalForm) (preTokenizer, preTokenized, error) {
	info := preTokenized{byteLevel: form.byteLevel}
	if isNull(raw) {
		if form.byteLevel {
			return unspell{}, info, nil
		}
		return nil, info, nil
	}
	l := splitLoader{spelled: form.byteLevel}
	if err := l.load(raw, "pre_tokenizer"); err != nil {
		return nil, info, err
	}
	for _, p := range l.parts {
		if m, ok := p.(metaspace); ok && m.scheme == "first" {
			info.minds = true
		}
	}
	if l.spelled {
		info.byteLevel = true
		l.parts = append(l.parts, unspell{})
	}
	if n := len(l.parts); !form.byteLevel && n >= 2 {
		// The spelling is undone at once, so it need not be done.
		if b, ok := l.parts[n-2].(byteLevel); ok {
			b.spell = false
			l.parts = append(l.parts[:n-2], b)
		}
	}
	if len(l.parts) == 1 {
		return l.parts[0], info, nil
	}
	return l.parts, info, nil
}

// splitLoader collects the pre-tokenizers of a file in order.
type splitLoader struct {
	parts   sequence
	spelled bool // a part before spells bytes
}

// splitFile is any pre-tokenizer of a file.
type splitFile struct {
	kind
	PreTokenizers  []json.RawMessage `json:"pretokenizers"`
	Pattern        patternFile       `json:"pattern"`
	Behavior       string            `json:"behavior"`
	Invert         bool              `json:"invert"`
	AddPrefixSpace *bool             `json:"add_prefix_space"`
	UseRegex       *bool             `json:"use_regex"`
	Individual     bool              `json:"individual_digits"`
	Delimiter      string            `json:"delimiter"`
	metaspaceFile
}

// patternFile is a pattern: a string to be found as it is, or a regular
// expression.
type patternFile struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

func (l *splitLoader) load(raw json.RawMessage, field string) error {
	var f splitFile
	if err := decodeField(raw, field, &f); err != nil {
		return err
	}
	switch f.Type {
	case "Sequence":
		for i, r := range f.PreTokenizers {
			if err := l.load(r, fmt.Sprintf("%s.pretokenizers[%d]", field, i)); err != nil {
				return err
			}
		}
		return nil
	case "ByteLevel":
		l.parts = append(l.parts, byteLevel{
			addSpace: f.AddPrefixSpace == nil || *f.AddPrefixSpace,
			words:    f.UseRegex == nil || *f.UseRegex,
			spell:    true,
		})
		l.spelled = true
		return nil
	default:
		p, err := f.single(field)
		l.parts = append(l.parts, p)
		return err
	}
}

// single returns a pre-tokenizer that does not change how text is spelled.
func (f *splitFile) single(field string) (preTokenizer, error) {
	spaces := splitPattern{classScanner{in: space, run: true}, removed, false}
	switch f.Type {
	case "Split":
		return newSplit(*f, field)
	case "Metaspace":
		return f.metaspaceFile.new(field)
	case "WhitespaceSplit":
		return splitPattern{classScanner{in: space}, removed, false}, nil
	case "Whitespace":
		return sequence{spaces, splitPattern{classScanner{in: word, run: true}, isolated, false}}, nil
	case "BertPreTokenizer":
		return sequence{spaces, splitPattern{classScanner{in: punct, asciiSigns: true}, isolated, false}}, nil
	case "Punctuation":
		if f.Behavior == "" {
			f.Behavior = "Isolated"
		}
		b, err := f.behavior(field)
		return splitPattern{classScanner{in: punct, asciiSigns: true}, b, false}, err
	case "Digits":
		b := contiguous
		if f.Individual {
			b = isolated
		}
		return splitPattern{classScanner{in: number}, b, false}, nil
	case "CharDelimiterSplit":
		if f.Delimiter == "" {
			return nil, fmt.Errorf("tokenizer.json: %s.delimiter is empty", field)
		}
		return splitPattern{literalScanner{f.Delimiter}, removed, false}, nil
	}
	return nil, unsupported(field, f.Type, knownPreTokenizers)
}

// newSplit builds the pre-tokenizer of type Split.
func newSplit(f splitFile, field string) (preTokenizer, error) {
	b, err := f.behavior(field)
	if err != nil {
		return nil, err
	}
	s, err := newScanner(f.Pattern, field+".pattern")
	return splitPattern{s, b, f.Invert}, err
}

// behavior returns what becomes of the matches.
func (f *splitFile) behavior(field string) (behavior, error) {
	behaviors := map[string]behavior{
		"Removed": removed, "Isolated": isolated, "Contiguous": contiguous,
		"MergedWithPrevious": mergedWithPrevious, "MergedWithNext": mergedWithNext,
	}
	b, ok := behaviors[f.Behavior]
	if !ok {
		return 0, fmt.Errorf("tokenizer.json: %s.behavior is %q; it is one of Removed, Isolated, Contiguous, MergedWithPrevious, MergedWithNext", field, f.Behavior)
	}
	return b, nil
}

package tokenizer

import (
	"encoding/json"
	"fmt"

	"golang.org/x/text/unicode/norm"
)

// A normalizer changes a text before it is cut into pieces.
type normalizer interface {
	normalize(s string) string
}

// normalForm is what Load must know of a normaliser.
type normalForm struct {
	byteLevel bool // it spells bytes
}

// unicodeForm is NFC, NFD, NFKC or NFKD.
type unicodeForm struct{ form norm.Form }

func (u unicodeForm) normalize(s string) string {
	if isASCII(s) {
		return s
	}
	return u.form.String(s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// normalizers applies several in order.
type normalizers []normalizer

func (n normalizers) normalize(s string) string {
	for _, x := range n {
		s = x.normalize(s)
	}
	return s
}

const knownNormalizers = "Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Replace, Prepend, BertNormalizer, Precompiled, Nmt, ByteLevel"

// normalizerFile is any normaliser of a file.
type normalizerFile struct {
	kind
	Normalizers []json.RawMessage `json:"normalizers"`
	Left        bool              `json:"strip_left"`
	Right       bool              `json:"strip_right"`
	Pattern     patternFile       `json:"pattern"`
	Content     string            `json:"content"`
	Prepend     string            `json:"prepend"`
	Charsmap    string            `json:"precompiled_charsmap"`
	CleanText   *bool             `json:"clean_text"`
	Chinese     *bool             `json:"handle_chinese_chars"`
	Accents     *bool             `json:"strip_accents"`
	Lowercase   *bool             `json:"lowercase"`
}

// loadNormalizer reads the part "normalizer", which may be absent.
func loadNormalizer(raw json.RawMessage) (normalizer, normalForm, error) {
	var form normalForm
	if isNull(raw) {
		return nil, form, nil
	}
	n, err := oneNormalizer(raw, "normalizer", &form)
	return n, form, err
}

func oneNormalizer(raw json.RawMessage, field string, form *normalForm) (normalizer, error) {
	var f normalizerFile
	if err := decodeField(raw, field, &f); err != nil {
		return nil, err
	}
	switch f.Type {
	case "Sequence":
		var all normalizers
		for _, r := range f.Normalizers {
			n, err := oneNormalizer(r, field+".normalizers", form)
			if err != nil {
				return nil, err
			}
			all = append(all, n)
		}
		return all, nil
	case "NFC":
		return unicodeForm{norm.NFC}, nil
	case "NFD":
		return unicodeForm{norm.NFD}, nil
	case "NFKC":
		return unicodeForm{norm.NFKC}, nil
	case "NFKD":
		return unicodeForm{norm.NFKD}, nil
	}
	return f.simple(field, form)
}

// simple returns a normaliser that does not hold others.
func (f *normalizerFile) simple(field string, form *normalForm) (normalizer, error) {
	if form.byteLevel {
		return nil, fmt.Errorf("tokenizer.json: %s: %s follows ByteLevel, which must be the last", field, f.Type)
	}
	isSet := func(b *bool, absent bool) bool {
		if b == nil {
			return absent
		}
		return *b
	}
	switch f.Type {
	case "Lowercase":
		return lowercase{}, nil
	case "Strip":
		return strip{f.Left, f.Right}, nil
	case "StripAccents":
		return stripAccents{}, nil
	case "Prepend":
		return prepend{f.Prepend}, nil
	case "Nmt":
		return nmt{}, nil
	case "Replace":
		s, err := newScanner(f.Pattern, field+".pattern")
		return replacePattern{s, f.Content}, err
	case "BertNormalizer":
		lower := isSet(f.Lowercase, true)
		return bertNormalizer{isSet(f.CleanText, true), isSet(f.Chinese, true), isSet(f.Accents, lower), lower}, nil
	case "Precompiled":
		p, err := newPrecompiled(f.Charsmap)
		if err != nil {
			return nil, fmt.Errorf("tokenizer.json: %s: %w", field, err)
		}
		return p, nil
	case "ByteLevel":
		form.byteLevel = true
		return spellNormalizer{}, nil
	}
	return nil, unsupported(field, f.Type, knownNormalizers)
}

// spellNormalizer spells bytes before the pre-tokenizer sees them.
type spellNormalizer struct{}

func (spellNormalizer) normalize(s string) string { return spellBytes(s) }

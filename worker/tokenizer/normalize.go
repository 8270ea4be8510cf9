package tokenizer

import (
	"encoding/json"

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

const knownNormalizers = "Sequence, NFC, NFD, NFKC, NFKD"

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
	var f struct {
		kind
		Normalizers []json.RawMessage `json:"normalizers"`
	}
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
	return nil, unsupported(field, f.Type, knownNormalizers)
}

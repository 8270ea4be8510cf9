package tokenizer

import (
	"fmt"
	"strings"
)

// metaspace writes spaces as a mark, ▁, and cuts before each mark.
type metaspace struct {
	mark   string
	scheme string // where a mark is put before the text: first, always, never
	cut    bool
}

// metaspaceFile is what the pre-tokenizer and the decoder of type Metaspace
// have.
type metaspaceFile struct {
	Replacement string  `json:"replacement"`
	Scheme      *string `json:"prepend_scheme"`
	AddSpace    *bool   `json:"add_prefix_space"`
	Cut         *bool   `json:"split"`
}

func (f *metaspaceFile) new(field string) (metaspace, error) {
	m := metaspace{mark: f.Replacement, scheme: "always", cut: f.Cut == nil || *f.Cut}
	if f.AddSpace != nil && !*f.AddSpace {
		m.scheme = "never"
	}
	if f.Scheme != nil {
		m.scheme = *f.Scheme
	}
	if m.mark == "" || m.scheme != "first" && m.scheme != "always" && m.scheme != "never" {
		return m, fmt.Errorf("tokenizer.json: %s: replacement is %q and prepend_scheme %q; the first is a character, the second one of first, always, never", field, m.mark, m.scheme)
	}
	return m, nil
}

func (m metaspace) split(p piece, emit func(piece)) {
	p.text = strings.ReplaceAll(p.text, " ", m.mark)
	if (m.scheme == "always" || m.scheme == "first" && p.first) && !strings.HasPrefix(p.text, m.mark) {
		p.text = m.mark + p.text
	}
	if !m.cut {
		emit(p)
		return
	}
	splitPattern{literalScanner{m.mark}, mergedWithNext, false}.split(p, emit)
}

package tokenizer

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// lowercase maps each character to lower case on its own, without regard to
// its neighbours.
type lowercase struct{}

func (lowercase) normalize(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	s = strings.Map(func(r rune) rune {
		if r == 'İ' {
			return r
		}
		return unicode.ToLower(r)
	}, s)
	return strings.ReplaceAll(s, "İ", "i\u0307")
}

// strip cuts white space off the ends.
type strip struct{ left, right bool }

func (x strip) normalize(s string) string {
	if x.left {
		s = strings.TrimLeftFunc(s, isSpace)
	}
	if x.right {
		s = strings.TrimRightFunc(s, isSpace)
	}
	return s
}

// stripAccents drops combining marks.
type stripAccents struct{}

func (stripAccents) normalize(s string) string {
	return dropRunes(s, func(r rune) bool { return classes.of(r)&mark != 0 })
}

func dropRunes(s string, drop func(rune) bool) string {
	return strings.Map(func(r rune) rune {
		if drop(r) {
			return -1
		}
		return r
	}, s)
}

// prepend puts a text before what is not empty.
type prepend struct{ text string }

func (p prepend) normalize(s string) string {
	if s == "" {
		return s
	}
	return p.text + s
}

// replacePattern replaces the matches of a scanner.
type replacePattern struct {
	scanner scanner
	by      string
}

func (p replacePattern) normalize(s string) string {
	sc := p.scanner
	if re, ok := sc.(regexScanner); ok {
		sc = re.on(s)
	}
	if l, ok := sc.(literalScanner); ok {
		return strings.ReplaceAll(s, l.text, p.by)
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		from, to := sc.next(s, i)
		b.WriteString(s[i:from])
		if from < to {
			b.WriteString(p.by)
		}
		i = to
	}
	return b.String()
}

// nmt is the cleaning of SentencePiece's nmt rules.
type nmt struct{}

func (nmt) normalize(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0x01 && r <= 0x08, r == 0x0B, r >= 0x0E && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
			return -1
		case r == 0x09, r == 0x0A, r == 0x0C, r == 0x0D, r == 0x1680, r >= 0x200B && r <= 0x200F,
			r == 0x2028, r == 0x2029, r == 0x2581, r == 0xFEFF, r == 0xFFFD:
			return ' '
		}
		return r
	}, s)
}

// bertNormalizer is the cleaning of BERT.
type bertNormalizer struct{ clean, chinese, accents, lower bool }

func (b bertNormalizer) normalize(s string) string {
	if b.clean {
		s = cleanControl(s)
	}
	if b.chinese && !isASCII(s) {
		s = spaceChinese(s)
	}
	if b.accents && !isASCII(s) {
		s = dropRunes(norm.NFD.String(s), func(r rune) bool { return unicode.Is(unicode.Mn, r) })
	}
	if b.lower {
		s = lowercase{}.normalize(s)
	}
	return s
}

// cleanControl drops control characters and makes white space plain.
func cleanControl(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r == 0 || r == 0xFFFD || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
			return -1
		case isSpace(r):
			return ' '
		}
		return r
	}, s)
}

// spaceChinese puts spaces around Chinese characters.
func spaceChinese(s string) string {
	var b strings.Builder
	for _, r := range s {
		if isChinese(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// isChinese is BERT's notion, with the gap that the library has at 2B820.
func isChinese(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF ||
		r >= 0x2A700 && r <= 0x2B73F || r >= 0x2B740 && r <= 0x2B81F || r >= 0x2B920 && r <= 0x2CEAF ||
		r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}

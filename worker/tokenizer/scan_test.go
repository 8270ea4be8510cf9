package tokenizer

import (
	"math/rand"
	"strings"
	"testing"
)

// randomText returns text of the kinds that pre-tokenizers cut differently.
func randomText(r *rand.Rand, n int) string {
	parts := []string{
		" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "'s", "'LL", "'ſ", "'re", "'", "’s", "don't", "I'M",
		"hello", "World", "HELLOWorld", "iPhone", "ab", "A", "é", "e\u0301", "\u0301", "ß", "İ", "ǅ", "你好", "かな", "カナー", "한국어", "مرحبا", "हिन्दी", "ไทย",
		"1", "12", "123", "1234567", "½", "²", "٣", "Ⅷ", "三", "_", "-", "--", "...", "!?", "/", "//", "</", "$", "€", "+=", "§", "🚂", "👩‍👩‍👧", "\u200d", "\ufeff", "\x00", "\x1b", "\u00ad",
		"ʰ", "ª", "\u20dd", "Ⓐ", "\U0001F1E9\U0001F1EA", "x1", "1x", "a.b", "(", ")", "{", "}", "\"", "`", "龥", "\U00020000", "\ue000", replacement,
	}
	var b strings.Builder
	for range n {
		b.WriteString(parts[r.Intn(len(parts))])
	}
	return b.String()
}

// TestScannersEqualTheirPatterns runs each scanner that is written by hand
// beside the matcher on the pattern that it stands for.
func TestScannersEqualTheirPatterns(t *testing.T) {
	for pattern, s := range knownScanners() {
		code, err := compileRegex(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		r := rand.New(rand.NewSource(7))
		for range 3000 {
			text := randomText(r, 1+r.Intn(8))
			m := regexScanner{code}.on(text)
			for i := 0; i < len(text); {
				from, to := s.next(text, i)
				wantFrom, wantTo := m.next(text, i)
				if from != wantFrom || to != wantTo {
					t.Fatalf("%s on %q at %d: [%d, %d); the pattern says [%d, %d)", pattern, text, i, from, to, wantFrom, wantTo)
				}
				i = to
			}
		}
	}
}

func TestRegexRefuses(t *testing.T) {
	for _, p := range []string{
		"", "a*", "(a*)*b", "a|", "(", "(a", "a)", "[a", "[]", "[z-a]b", `\p{Nope}x`, `\p`, `\k<x>`, `(?<=a)b`, "*a", "a**b|", `\x`, `\x{110000}`,
		"[a&&b]", "[[:alpha:]]", strings.Repeat("(", 100) + "a" + strings.Repeat(")", 100), "((a{1000}){1000}){1000}", strings.Repeat("a", maxPattern+1),
	} {
		if _, err := compileRegex(p); err == nil {
			t.Errorf("%q is taken", clip(p))
		}
	}
}

// TestRegexWorkIsBounded counts steps where a plain backtracking search takes
// exponentially many, or as many as the text's length squared.
func TestRegexWorkIsBounded(t *testing.T) {
	f := func(pattern, text string) {
		t.Helper()
		code, err := compileRegex(pattern)
		if err != nil {
			t.Fatal(err)
		}
		m := regexScanner{code}.on(text).(*regexRun)
		for i := 0; i < len(text); {
			_, i = m.next(text, i)
		}
		if most := 3*len(code)*len(text) + m.patience; m.steps > most {
			t.Errorf("%s on %d bytes: %d steps; want at most %d", pattern, len(text), m.steps, most)
		}
	}
	a := strings.Repeat("a", 20_000)
	f("(a+)+$|x", a+"b")
	f("(a|a)+b|a", a)
	f("a+b|a", a)
	f("(a|aa)+c", a)
	f("(x+x+)+y|x", strings.Repeat("x", 20_000))
	f("a{1,500}b|a", a)
}

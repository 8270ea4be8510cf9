package tokenizer

import "strings"

// literalScanner finds a string as it is.
type literalScanner struct{ text string }

func (l literalScanner) next(s string, i int) (int, int) {
	n := strings.Index(s[i:], l.text)
	if n < 0 {
		return len(s), len(s)
	}
	return i + n, i + n + len(l.text)
}

package tokenizer

import "strings"

// A scanner finds the pieces that a pre-tokenizer's pattern matches: next
// returns the range of the first match that begins at i or later, and
// (len(s), len(s)) if there is none.
type scanner interface {
	next(s string, i int) (from, to int)
}

// gpt2Scanner is the pattern of GPT-2:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
type gpt2Scanner struct{}

func (gpt2Scanner) next(s string, i int) (int, int) {
	if i >= len(s) {
		return i, i
	}
	if n := contraction(s[i:], false); n > 0 {
		return i, i + n
	}
	j := i
	if s[j] == ' ' && j+1 < len(s) {
		j++
	}
	c, _ := classes.at(s, j)
	switch {
	case c&letter != 0:
		return i, classes.run(s, j, letter)
	case c&number != 0:
		return i, classes.run(s, j, number)
	case c&space == 0:
		return i, classes.runNot(s, j, space|letter|number)
	}
	return i, spaces(s, i)
}

// wordScanner is the pattern of cl100k, Llama 3 and Qwen:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
//	 ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
type wordScanner struct {
	digits  int   // the longest run of numbers in one piece
	letters class // what counts as a letter: Qwen3.5 takes marks, too
}

func (w wordScanner) next(s string, i int) (int, int) {
	if i >= len(s) {
		return i, i
	}
	if n := contraction(s[i:], true); n > 0 {
		return i, i + n
	}
	c, n := classes.at(s, i)
	if c&w.letters != 0 {
		return i, classes.run(s, i+n, w.letters)
	}
	if c&number != 0 {
		return i, numbers(s, i, w.digits)
	}
	if c&newline == 0 && i+n < len(s) {
		after, m := classes.at(s, i+n)
		if after&w.letters != 0 {
			return i, classes.run(s, i+n+m, w.letters)
		}
		if s[i] == ' ' && after&(space|number) == 0 {
			return i, w.signs(s, i+n)
		}
	}
	if c&space == 0 {
		return i, w.signs(s, i)
	}
	return i, lines(s, i)
}

// signs returns the end of [^\s\p{L}\p{N}]+[\r\n]* at s[i].
func (w wordScanner) signs(s string, i int) int {
	return classes.run(s, classes.runNot(s, i, space|w.letters|number), newline)
}

// numbers returns the end of \p{N}{1,most} at s[i].
func numbers(s string, i, most int) int {
	for ; most > 0 && i < len(s); most-- {
		c, n := classes.at(s, i)
		if c&number == 0 {
			break
		}
		i += n
	}
	return i
}

// spaces returns the end of \s+(?!\S)|\s+ at s[i], which is a space: the run
// without its last character, which goes with the word that follows.
func spaces(s string, i int) int {
	end, last := i, i
	for end < len(s) {
		c, n := classes.at(s, end)
		if c&space == 0 {
			if last > i {
				return last
			}
			return end
		}
		last = end
		end += n
	}
	return end
}

// lines returns the end of \s*[\r\n]+|\s+(?!\S)|\s+ at s[i], which is a
// space.
func lines(s string, i int) int {
	end := classes.run(s, i, space)
	if n := strings.LastIndexAny(s[i:end], "\r\n"); n >= 0 {
		return i + n + 1
	}
	return spaces(s, i)
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd at the
// beginning of s, 0 if there is none.
func contraction(s string, fold bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	a, b := s[1], byte(0)
	if len(s) > 2 {
		b = s[2]
	}
	if fold {
		if strings.HasPrefix(s[1:], "ſ") { // folds to s
			return 1 + len("ſ")
		}
		a, b = lowerASCII(a), lowerASCII(b)
	}
	switch {
	case a == 's' || a == 't' || a == 'm' || a == 'd':
		return 2
	case a == 'r' && b == 'e', a == 'v' && b == 'e', a == 'l' && b == 'l':
		return 3
	}
	return 0
}

func lowerASCII(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

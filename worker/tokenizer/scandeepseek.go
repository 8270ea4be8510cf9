package tokenizer

// deepseekScanner is the third pattern of DeepSeek V3:
//
//	[!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|
//	\s*[\r\n]+|\s+(?!\S)|\s+
//
// where [!-/:-~] stands for the signs of ASCII. Numbers match none of it.
type deepseekScanner struct{}

func (deepseekScanner) next(s string, i int) (int, int) {
	for i < len(s) {
		c, n := classes.at(s, i)
		if c&(punct|sign) != 0 && s[i] < 0x80 && i+1 < len(s) && isASCIILetter(s[i+1]) {
			end := i + 2
			for end < len(s) && isASCIILetter(s[end]) {
				end++
			}
			return i, end
		}
		if c&(newline|letter|punct|sign) == 0 && i+n < len(s) {
			if after, m := classes.at(s, i+n); after&(letter|mark) != 0 {
				return i, classes.run(s, i+n+m, letter|mark)
			}
		}
		if c&(letter|mark) != 0 {
			return i, classes.run(s, i+n, letter|mark)
		}
		if s[i] == ' ' && i+1 < len(s) {
			if after, _ := classes.at(s, i+1); after&(punct|sign) != 0 {
				return i, signLine(s, i+1)
			}
		}
		if c&(punct|sign) != 0 {
			return i, signLine(s, i)
		}
		if c&space != 0 {
			return i, lines(s, i)
		}
		i += n
	}
	return len(s), len(s)
}

// signLine returns the end of [\p{P}\p{S}]+[\r\n]* at s[i].
func signLine(s string, i int) int {
	return classes.run(s, classes.run(s, i, punct|sign), newline)
}

func isASCIILetter(c byte) bool {
	c = lowerASCII(c)
	return c >= 'a' && c <= 'z'
}

// numberScanner is the pattern \p{N}{1,digits}.
type numberScanner struct{ digits int }

func (d numberScanner) next(s string, i int) (int, int) {
	i = classes.runNot(s, i, number)
	return i, numbers(s, i, d.digits)
}

// cjkScanner is DeepSeek's pattern [一-龥぀-ゟ゠-ヿ]+.
type cjkScanner struct{}

func (cjkScanner) next(s string, i int) (int, int) {
	from := -1
	for j, r := range s[i:] {
		in := r >= 0x4E00 && r <= 0x9FA5 || r >= 0x3040 && r <= 0x30FF
		if in && from < 0 {
			from = i + j
		}
		if !in && from >= 0 {
			return from, i + j
		}
	}
	if from < 0 {
		from = len(s)
	}
	return from, len(s)
}

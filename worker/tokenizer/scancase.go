package tokenizer

// caseScanner is the pattern of GPT-4o (o200k) and of Mistral's tekken, which
// cuts words where the case changes:
//
//	[^\r\n\p{L}\p{N}]?[U]*[W]+(?i:'s|'t|…)?|[^\r\n\p{L}\p{N}]?[U]+[W]*(?i:'s|'t|…)?|
//	\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// where U is [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and W is [\p{Ll}\p{Lm}\p{Lo}\p{M}].
type caseScanner struct {
	digits       int
	contractions bool
}

const (
	upperPart = upper | other | mark
	lowerPart = lower | other | mark
)

func (cs caseScanner) next(s string, i int) (int, int) {
	if i >= len(s) {
		return i, i
	}
	c, n := classes.at(s, i)
	prefix := c&(newline|letter|number) == 0 && i+n < len(s)
	for _, part := range []func(string, int) int{lowerEnd, upperEnd} {
		if prefix {
			if end := part(s, i+n); end > 0 {
				return i, cs.word(s, end)
			}
		}
		if c&(letter|mark) != 0 {
			if end := part(s, i); end > 0 {
				return i, cs.word(s, end)
			}
		}
	}
	if c&number != 0 {
		return i, numbers(s, i, cs.digits)
	}
	if s[i] == ' ' && i+1 < len(s) {
		if after, _ := classes.at(s, i+1); after&(space|letter|number) == 0 {
			return i, pathSigns(s, i+1)
		}
	}
	if c&space == 0 {
		return i, pathSigns(s, i)
	}
	return i, lines(s, i)
}

// word returns the end of a word with its contraction.
func (cs caseScanner) word(s string, end int) int {
	if cs.contractions {
		end += contraction(s[end:], true)
	}
	return end
}

// lowerEnd returns the end of [U]*[W]+ at s[i], 0 if it does not match.
func lowerEnd(s string, i int) int {
	end, back := i, 0 // back: the end after the last character that is in W, too
	for end < len(s) {
		c, n := classes.at(s, end)
		if c&upperPart == 0 {
			if c&lowerPart != 0 {
				return classes.run(s, end+n, lowerPart)
			}
			break
		}
		end += n
		if c&lowerPart != 0 {
			back = end
		}
	}
	return back
}

// upperEnd returns the end of [U]+[W]* at s[i], 0 if it does not match.
func upperEnd(s string, i int) int {
	end := classes.run(s, i, upperPart)
	if end == i {
		return 0
	}
	return classes.run(s, end, lowerPart)
}

// pathSigns returns the end of [^\s\p{L}\p{N}]+[\r\n/]* at s[i].
func pathSigns(s string, i int) int {
	i = classes.runNot(s, i, space|letter|number)
	for i < len(s) && (s[i] == '\r' || s[i] == '\n' || s[i] == '/') {
		i++
	}
	return i
}

package tokenizer

import "fmt"

// The tails that the patterns of many tokenizers share.
const (
	tailLines = `|\s*[\r\n]+|\s+(?!\S)|\s+`
	tailLine  = `|\s*[\r\n]|\s+(?!\S)|\s+`

	foldedAll   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	foldedSet   = `'(?i:[sdmt]|ll|ve|re)`
	upperLetter = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	lowerLetter = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
)

// knownScanners are the patterns that have scanners of their own, because the
// tokenizers in use have them.
func knownScanners() map[string]scanner {
	plainSigns := `| ?[^\s\p{L}\p{N}]+[\r\n]*`
	possessive := `| ?[^\s\p{L}\p{N}]++[\r\n]*`
	words := func(digits int) scanner { return wordScanner{digits, letter} }
	m := map[string]scanner{
		`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`: gpt2Scanner{},
		`'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`:    gpt2Scanner{},
		foldedAll + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}` + plainSigns + tailLines:       words(1),
		foldedAll + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}` + plainSigns + tailLines:  words(3),
		foldedSet + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}` + plainSigns + tailLines:  words(3),
		foldedSet + `|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}` + possessive + tailLine:  words(3),
		`\p{N}{1,3}`:   numberScanner{3},
		`\p{N}`:        numberScanner{1},
		`[一-龥぀-ゟ゠-ヿ]+`: cjkScanner{},
		"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" +
			`|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*` + tailLines: deepseekScanner{},
	}
	m[foldedAll+`|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*`+tailLines] = wordScanner{1, letter | mark}
	for _, digits := range []int{1, 3} {
		count := map[int]string{1: `\p{N}`, 3: `\p{N}{1,3}`}[digits]
		for _, short := range []string{"", foldedAll + "?"} {
			pattern := `[^\r\n\p{L}\p{N}]?` + upperLetter + "*" + lowerLetter + "+" + short +
				`|[^\r\n\p{L}\p{N}]?` + upperLetter + "+" + lowerLetter + "*" + short +
				"|" + count + `| ?[^\s\p{L}\p{N}]+[\r\n/]*` + tailLines
			m[pattern] = caseScanner{digits, short != ""}
		}
	}
	return m
}

// newScanner returns the scanner of a pattern.
func newScanner(p patternFile, field string) (scanner, error) {
	switch {
	case p.String != nil && *p.String != "":
		return literalScanner{*p.String}, nil
	case p.Regex != nil:
		if s, ok := knownScanners()[*p.Regex]; ok {
			return s, nil
		}
		code, err := compileRegex(*p.Regex)
		if err != nil {
			return nil, fmt.Errorf("tokenizer.json: %s: pattern %s: %w", field, clip(*p.Regex), err)
		}
		return regexScanner{code}, nil
	}
	return nil, fmt.Errorf("tokenizer.json: %s: neither String nor Regex is given", field)
}

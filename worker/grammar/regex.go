package grammar

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// maxRegex bounds a regular expression in bytes.
const maxRegex = 16 << 10

// regexBuilder turns a regular expression into an expression over bytes.
// char writes one character of a set: as UTF-8, or as a JSON string has it.
type regexBuilder struct {
	p    *program
	what string // names the expression in errors
	char func(ranges []rune) expr
}

// build parses a pattern. With search, the pattern may match anywhere in the
// text, as a schema's pattern does; else it is the whole text.
func (b *regexBuilder) build(pattern string, search bool) expr {
	if len(pattern) > maxRegex {
		failf("%s has %d bytes; at most %d are allowed", b.what, len(pattern), maxRegex)
	}
	tree, err := syntax.Parse(goPattern(pattern), syntax.Perl)
	if err != nil {
		failf("%s cannot be used: %w", b.what, err)
	}
	tree = tree.Simplify()
	if !search {
		return b.node(tree, true, true)
	}
	return b.searching(tree)
}

// goPattern writes \uXXXX, as JavaScript has it, in Go's way.
func goPattern(pattern string) string {
	if !strings.Contains(pattern, `\u`) {
		return pattern
	}
	var out strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '\\' || i+1 == len(pattern) {
			out.WriteByte(pattern[i])
			continue
		}
		if hex := pattern[i+2 : min(i+6, len(pattern))]; pattern[i+1] == 'u' && len(hex) == 4 {
			out.WriteString(`\x{` + hex + `}`)
			i += 5
			continue
		}
		out.WriteString(pattern[i : i+2])
		i++
	}
	return out.String()
}

// searching puts any text before and after, where the pattern is not
// anchored.
func (b *regexBuilder) searching(re *syntax.Regexp) expr {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	if re.Op == syntax.OpAlternate {
		var alts altExpr
		for _, s := range re.Sub {
			alts = append(alts, b.searching(s))
		}
		return alts
	}
	parts := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		parts = re.Sub
	}
	some := repExpr{b.char([]rune{0, unicode.MaxRune}), 0, -1}
	var seq seqExpr
	if len(parts) > 0 && isBegin(parts[0]) {
		parts = parts[1:]
	} else {
		seq = append(seq, some)
	}
	anchored := len(parts) > 0 && isEnd(parts[len(parts)-1])
	if anchored {
		parts = parts[:len(parts)-1]
	}
	for _, s := range parts {
		seq = append(seq, b.node(s, false, false))
	}
	if !anchored {
		seq = append(seq, some)
	}
	return seq
}

func isBegin(re *syntax.Regexp) bool {
	return re.Op == syntax.OpBeginText || re.Op == syntax.OpBeginLine
}

func isEnd(re *syntax.Regexp) bool {
	return re.Op == syntax.OpEndText || re.Op == syntax.OpEndLine
}

// node turns one node of the tree. first and last say that it stands at the
// beginning or end of the whole text, where an anchor says nothing new.
func (b *regexBuilder) node(re *syntax.Regexp, first, last bool) expr {
	b.p.spend(1)
	switch re.Op {
	case syntax.OpEmptyMatch:
		return seqExpr{}
	case syntax.OpNoMatch:
		return altExpr{}
	case syntax.OpLiteral:
		var seq seqExpr
		for _, r := range re.Rune {
			b.p.spend(1)
			seq = append(seq, b.char(folds(r, re.Flags&syntax.FoldCase != 0)))
		}
		return seq
	case syntax.OpCharClass:
		b.p.spend(len(re.Rune))
		return b.char(re.Rune)
	case syntax.OpAnyChar:
		return b.char([]rune{0, unicode.MaxRune})
	case syntax.OpAnyCharNotNL:
		return b.char([]rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune})
	case syntax.OpCapture:
		return b.node(re.Sub[0], first, last)
	case syntax.OpConcat:
		var seq seqExpr
		for i, s := range re.Sub {
			seq = append(seq, b.node(s, first && i == 0, last && i == len(re.Sub)-1))
		}
		return seq
	case syntax.OpAlternate:
		var alts altExpr
		for _, s := range re.Sub {
			alts = append(alts, b.node(s, first, last))
		}
		return alts
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return b.repeat(re)
	}
	if isBegin(re) && first || isEnd(re) && last {
		return seqExpr{}
	}
	failf("%s cannot be used: %s is supported at the ends of the expression only", b.what, re.Op)
	return nil
}

func (b *regexBuilder) repeat(re *syntax.Regexp) expr {
	x := b.node(re.Sub[0], false, false)
	switch re.Op {
	case syntax.OpStar:
		return repExpr{x, 0, -1}
	case syntax.OpPlus:
		return repExpr{x, 1, -1}
	case syntax.OpQuest:
		return repExpr{x, 0, 1}
	}
	return repExpr{x, re.Min, re.Max}
}

// folds returns the ranges of a character, with its other cases if fold.
func folds(r rune, fold bool) []rune {
	ranges := []rune{r, r}
	if fold {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			ranges = append(ranges, f, f)
		}
	}
	return ranges
}

// jsonChar matches one character of a set inside a JSON string: quotes,
// backslashes and control characters are escaped.
func jsonChar(ranges []rune) expr {
	var plain []rune
	var alts altExpr
	for i := 0; i+1 < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		for c, esc := range jsonEscapes {
			if lo <= c && c <= hi {
				alts = append(alts, bytesExpr(esc))
			}
		}
		plain = append(plain, cutRanges(lo, hi)...)
	}
	slices.SortFunc(alts, func(a, b expr) int {
		if a.(bytesExpr) < b.(bytesExpr) {
			return -1
		}
		return 1
	})
	if len(plain) > 0 {
		alts = append(alts, runeRanges(plain))
	}
	return alts
}

// jsonEscapes are the short escapes of a JSON string.
var jsonEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\t': `\t`, '\r': `\r`, '\b': `\b`, '\f': `\f`}

// cutRanges returns [lo, hi] without what a JSON string cannot have as it is.
func cutRanges(lo, hi rune) []rune {
	var out []rune
	for _, allowed := range [][2]rune{{0x20, 0x21}, {0x23, 0x5B}, {0x5D, unicode.MaxRune}} {
		a, b := max(lo, allowed[0]), min(hi, allowed[1])
		if a <= b {
			out = append(out, a, b)
		}
	}
	return out
}

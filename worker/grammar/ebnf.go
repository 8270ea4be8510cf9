package grammar

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxEBNF bounds a grammar in bytes.
const maxEBNF = 256 << 10

// ebnfParser reads GBNF:
//
//	root  ::= "yes" | "no" reason?
//	reason ::= " (" [a-z ]{1,40} ")"   # a comment
type ebnfParser struct {
	p     *program
	src   string
	at    int
	rules map[string]int
	known map[string]bool
	depth int
}

// buildEBNF returns what a grammar's rule root matches.
func buildEBNF(p *program, src string) expr {
	if len(src) > maxEBNF {
		failf("the grammar has %d bytes; at most %d are allowed", len(src), maxEBNF)
	}
	first := p.newRule()
	e := &ebnfParser{p: p, src: src, rules: map[string]int{"root": first}, known: map[string]bool{}}
	for e.skip(true); e.at < len(src); e.skip(true) {
		name := e.name()
		e.skip(true)
		if !e.take("::=") {
			e.fail("expected ::=")
		}
		if e.known[name] {
			e.fail("the rule %q is there twice", name)
		}
		e.known[name] = true
		n := e.ruleNumber(name)
		x := e.alternatives(true)
		p.rules[n] = x
	}
	for name := range e.rules {
		if !e.known[name] {
			failf("the grammar has no rule %q", name)
		}
	}
	p.unfoldLeft(first)
	return ruleExpr(first)
}

func (e *ebnfParser) fail(format string, args ...any) {
	line := 1 + strings.Count(e.src[:min(e.at, len(e.src))], "\n")
	failf("the grammar, line "+strconv.Itoa(line)+": "+format, args...)
}

func (e *ebnfParser) take(s string) bool {
	if strings.HasPrefix(e.src[e.at:], s) {
		e.at += len(s)
		return true
	}
	return false
}

// skip passes over spaces and comments, and over line ends if lines is set.
func (e *ebnfParser) skip(lines bool) {
	for e.at < len(e.src) {
		switch c := e.src[e.at]; {
		case c == ' ' || c == '\t' || lines && (c == '\n' || c == '\r'):
			e.at++
		case c == '#':
			n := strings.IndexByte(e.src[e.at:], '\n')
			if n < 0 {
				n = len(e.src) - e.at
			}
			e.at += n
		default:
			return
		}
	}
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func (e *ebnfParser) name() string {
	from := e.at
	for e.at < len(e.src) && isNameByte(e.src[e.at]) {
		e.at++
	}
	if from == e.at {
		e.fail("expected the name of a rule")
	}
	return e.src[from:e.at]
}

func (e *ebnfParser) ruleNumber(name string) int {
	n, ok := e.rules[name]
	if !ok {
		n = e.p.newRule()
		e.rules[name] = n
	}
	return n
}

// alternatives reads a | b. At the top, a rule ends where the next begins.
func (e *ebnfParser) alternatives(top bool) expr {
	if e.depth++; e.depth > maxSchemaDepth {
		e.fail("groups are nested deeper than %d levels", maxSchemaDepth)
	}
	defer func() { e.depth-- }()
	alts := altExpr{e.sequence(top)}
	for e.skip(true); e.take("|"); e.skip(true) {
		alts = append(alts, e.sequence(top))
	}
	return alts
}

func (e *ebnfParser) sequence(top bool) expr {
	var seq seqExpr
	for {
		e.skip(true)
		if e.at >= len(e.src) || strings.IndexByte("|)", e.src[e.at]) >= 0 || top && e.atRule() {
			return seq
		}
		e.p.spend(1)
		seq = append(seq, e.repeated(e.atom()))
	}
}

// atRule reports whether the next rule begins here.
func (e *ebnfParser) atRule() bool {
	at := e.at
	for at < len(e.src) && isNameByte(e.src[at]) {
		at++
	}
	if at == e.at {
		return false
	}
	return strings.HasPrefix(strings.TrimLeft(e.src[at:], " \t\r\n"), "::=")
}

func (e *ebnfParser) atom() expr {
	switch c := e.src[e.at]; {
	case c == '"':
		return e.literal()
	case c == '[':
		return e.class()
	case c == '(':
		e.at++
		x := e.alternatives(false)
		e.skip(true)
		if !e.take(")") {
			e.fail("a group is not closed")
		}
		return x
	case c == '.':
		e.at++
		return runeRanges([]rune{0, utf8.MaxRune})
	case isNameByte(c):
		return ruleExpr(e.ruleNumber(e.name()))
	}
	e.fail("unexpected %q", e.src[e.at])
	return nil
}

// char reads one character, or its escape.
func (e *ebnfParser) char() rune {
	r, n := utf8.DecodeRuneInString(e.src[e.at:])
	if n == 0 || r == utf8.RuneError && n == 1 {
		e.fail("the grammar ends too early, or is not UTF-8")
	}
	e.at += n
	if r != '\\' {
		return r
	}
	if e.at >= len(e.src) {
		e.fail("the grammar ends in an escape")
	}
	c := e.src[e.at]
	e.at++
	if n := strings.IndexByte("xuU", c); n >= 0 {
		width := 2 << n
		if e.at+width > len(e.src) {
			e.fail("an escape is cut short")
		}
		v, err := strconv.ParseUint(e.src[e.at:e.at+width], 16, 32)
		if err != nil || v > utf8.MaxRune {
			e.fail("\\%c%s is no character", c, e.src[e.at:e.at+width])
		}
		e.at += width
		return rune(v)
	}
	plain := map[byte]rune{'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '[': '[', ']': ']', '-': '-', '^': '^', '\'': '\'', '/': '/'}
	p, ok := plain[c]
	if !ok {
		e.fail("unknown escape \\%c", c)
	}
	return p
}

func (e *ebnfParser) literal() expr {
	e.at++
	var text []byte
	for !e.take(`"`) {
		text = utf8.AppendRune(text, e.char())
	}
	e.p.spend(len(text))
	return bytesExpr(text)
}

func (e *ebnfParser) class() expr {
	e.at++
	not := e.take("^")
	var ranges []rune
	for !e.take("]") {
		lo := e.char()
		hi := lo
		if e.at+1 < len(e.src) && e.src[e.at] == '-' && e.src[e.at+1] != ']' {
			e.at++
			hi = e.char()
		}
		if hi < lo {
			e.fail("a range of characters ends before it begins")
		}
		ranges = append(ranges, lo, hi)
	}
	e.p.spend(len(ranges))
	if not {
		ranges = negate(ranges)
	}
	return runeRanges(ranges)
}

// negate returns the ranges of all other characters.
func negate(ranges []rune) []rune {
	lo := rune(0)
	var out []rune
	for lo <= utf8.MaxRune {
		next, end := rune(utf8.MaxRune+1), rune(0)
		for i := 0; i < len(ranges); i += 2 {
			if ranges[i+1] >= lo && ranges[i] < next {
				next, end = max(ranges[i], lo), ranges[i+1]
			}
		}
		if next > lo {
			out = append(out, lo, next-1)
		}
		if next > utf8.MaxRune {
			break
		}
		lo = end + 1
	}
	return out
}

func (e *ebnfParser) repeated(x expr) expr {
	for e.at < len(e.src) {
		switch {
		case e.take("*"):
			x = repExpr{x, 0, -1}
		case e.take("+"):
			x = repExpr{x, 1, -1}
		case e.take("?"):
			x = repExpr{x, 0, 1}
		case e.take("{"):
			end := strings.IndexByte(e.src[e.at:], '}')
			if end < 0 {
				e.fail("a repetition is not closed")
			}
			a, b, two := strings.Cut(strings.ReplaceAll(e.src[e.at:e.at+end], " ", ""), ",")
			least, err := strconv.Atoi(a)
			most := least
			if two && b == "" {
				most = -1
			} else if two && err == nil {
				most, err = strconv.Atoi(b)
			}
			if err != nil || least < 0 || most >= 0 && most < least {
				e.fail("{%s} is no repetition", e.src[e.at:e.at+end])
			}
			e.at += end + 1
			e.p.spend(max(least, most))
			x = repExpr{x, least, most}
		default:
			return x
		}
	}
	return x
}

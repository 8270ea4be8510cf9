package tokenizer

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The patterns of tokenizer.json are written for Oniguruma with the syntax of
// Ruby. This compiler takes what patterns of tokenizers use: alternatives,
// groups, classes, greedy, lazy and possessive repetition, look-ahead and
// case-insensitive groups. It refuses what it does not know, and patterns that
// match the empty text.

// opcode is what an instruction does.
type opcode int

const (
	opSet       opcode = iota // one character of a set
	opSplit                   // try x, then y
	opJump                    // go to x
	opLook                    // go on if the program at x matches here
	opLookNot                 // go on if it does not
	opAtomic                  // match the program at x once and for all
	opLineBegin               // ^
	opLineEnd                 // $
	opMatch
)

type inst struct {
	op   opcode
	x, y int
	set  *runeSet
}

// Bounds of a pattern, so that no file makes a large program.
const (
	maxPattern = 64 << 10
	maxInsts   = 20_000
	maxGroups  = 50
)

// regexCompiler turns a pattern into a program.
type regexCompiler struct {
	src   string
	at    int
	fold  bool
	depth int
	err   error
}

// fragment is a piece of a program, with addresses relative to its beginning.
type fragment struct {
	code  []inst
	empty bool // it can match the empty text
}

// compileRegex returns the program of a pattern.
func compileRegex(src string) ([]inst, error) {
	if len(src) > maxPattern {
		return nil, fmt.Errorf("the pattern has %d bytes; at most %d are allowed", len(src), maxPattern)
	}
	c := &regexCompiler{src: src}
	f := c.alternatives()
	if c.err == nil && c.at < len(src) {
		c.fail("unexpected %q", src[c.at])
	}
	if c.err == nil && f.empty {
		c.fail("the pattern matches the empty text")
	}
	return append(f.code, inst{op: opMatch}), c.err
}

func (c *regexCompiler) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("at character %d: %s", c.at, fmt.Sprintf(format, args...))
	}
}

func (c *regexCompiler) more() bool { return c.err == nil && c.at < len(c.src) }

func (c *regexCompiler) take(s string) bool {
	if strings.HasPrefix(c.src[c.at:], s) {
		c.at += len(s)
		return true
	}
	return false
}

func (c *regexCompiler) rune() rune {
	if c.at >= len(c.src) {
		c.fail("the pattern ends too early")
		return 0
	}
	r, n := utf8.DecodeRuneInString(c.src[c.at:])
	c.at += n
	return r
}

// moved returns code with its addresses moved by n.
func moved(code []inst, n int) []inst {
	out := make([]inst, len(code))
	for i, in := range code {
		in.x += n
		in.y += n
		out[i] = in
	}
	return out
}

func (c *regexCompiler) join(a, b fragment) fragment {
	if len(a.code)+len(b.code) > maxInsts {
		c.fail("the pattern is too large")
		return a
	}
	return fragment{code: append(a.code, moved(b.code, len(a.code))...), empty: a.empty && b.empty}
}

// alternatives is a|b|c.
func (c *regexCompiler) alternatives() fragment {
	if c.depth++; c.depth > maxGroups {
		c.fail("groups are nested deeper than %d levels", maxGroups)
		return fragment{}
	}
	defer func() { c.depth-- }()
	f := c.concatenation()
	for c.more() && c.take("|") {
		g := c.concatenation()
		// split 1, n+2 · f · jump end · g
		n := len(f.code)
		code := []inst{{op: opSplit, x: 1, y: n + 2}}
		code = append(code, moved(f.code, 1)...)
		code = append(code, inst{op: opJump, x: n + 2 + len(g.code)})
		code = append(code, moved(g.code, n+2)...)
		f = fragment{code: code, empty: f.empty || g.empty}
	}
	return f
}

func (c *regexCompiler) concatenation() fragment {
	f := fragment{empty: true}
	for c.more() && c.src[c.at] != '|' && c.src[c.at] != ')' {
		f = c.join(f, c.repeated())
	}
	return f
}

// repeated is an atom with its quantifiers.
func (c *regexCompiler) repeated() fragment {
	f := c.atom()
	for c.more() {
		low, high, braces := 0, -1, false
		switch {
		case c.take("*"):
		case c.take("+"):
			low = 1
		case c.take("?"):
			high = 1
		case c.src[c.at] == '{':
			var ok bool
			if low, high, ok = c.braces(); !ok {
				return f
			}
			braces = true
		default:
			return f
		}
		lazy := c.more() && c.take("?")
		f = c.quantify(f, low, high, lazy)
		// After braces a plus is another repetition, as in Ruby.
		if !lazy && !braces && c.more() && c.take("+") {
			f = indivisible(f)
		}
	}
	return f
}

// braces reads {m}, {m,}, {,n} or {m,n}; anything else is plain text.
func (c *regexCompiler) braces() (low, high int, ok bool) {
	end := strings.IndexByte(c.src[c.at:], '}')
	if end < 0 {
		return 0, 0, false
	}
	a, b, two := strings.Cut(c.src[c.at+1:c.at+end], ",")
	low, errLow := strconv.Atoi(a)
	high, errHigh := strconv.Atoi(b)
	switch {
	case !two:
		high, errHigh = low, errLow
	case b == "":
		high, errHigh = -1, nil
	case a == "":
		low, errLow = 0, nil
	}
	if errLow != nil || errHigh != nil || low < 0 || low > 1000 || high > 1000 || high >= 0 && high < low {
		return 0, 0, false
	}
	c.at += end + 1
	return low, high, true
}

// quantify repeats f low to high times, without bound if high is negative.
func (c *regexCompiler) quantify(f fragment, low, high int, lazy bool) fragment {
	split := func(in, out int) inst {
		if lazy {
			return inst{op: opSplit, x: out, y: in}
		}
		return inst{op: opSplit, x: in, y: out}
	}
	out := fragment{empty: true}
	for range low {
		out = c.join(out, f)
	}
	if high < 0 {
		if f.empty {
			c.fail("a part that may be empty is repeated without bound")
			return out
		}
		n := len(f.code)
		loop := fragment{empty: true, code: append([]inst{split(1, n+2)}, moved(f.code, 1)...)}
		loop.code = append(loop.code, inst{op: opJump, x: 0})
		return c.join(out, loop)
	}
	for range high - low {
		option := fragment{empty: true, code: append([]inst{split(1, len(f.code)+1)}, moved(f.code, 1)...)}
		out = c.join(out, option)
	}
	return out
}

// sub wraps a fragment as a program of its own, run by op.
func sub(op opcode, f fragment, empty bool) fragment {
	// op 2 · jump over · f · match
	code := []inst{{op: op, x: 2}, {op: opJump, x: len(f.code) + 3}}
	code = append(code, moved(f.code, 2)...)
	return fragment{code: append(code, inst{op: opMatch}), empty: empty}
}

func indivisible(f fragment) fragment { return sub(opAtomic, f, f.empty) }

func (c *regexCompiler) atom() fragment {
	one := func(s *runeSet) fragment { return fragment{code: []inst{{op: opSet, set: s}}} }
	r := c.rune()
	switch r {
	case '(':
		return c.group()
	case '[':
		return one(c.class())
	case '.':
		return one((&runeSet{items: []setItem{{lo: '\n', hi: '\n'}}, not: true}).finish(false))
	case '^':
		return fragment{code: []inst{{op: opLineBegin}}, empty: true}
	case '$':
		return fragment{code: []inst{{op: opLineEnd}}, empty: true}
	case '\\':
		return one((&runeSet{items: []setItem{c.escape()}}).finish(c.fold))
	case '*', '+', '?':
		c.at--
		c.fail("%q repeats nothing", r)
	}
	return one((&runeSet{items: []setItem{{lo: r, hi: r}}}).finish(c.fold))
}

// group is what an open bracket begins.
func (c *regexCompiler) group() fragment {
	fold := c.fold
	op := opcode(-1)
	empty := false
	switch {
	case c.take("?:"):
	case c.take("?i:"):
		c.fold = true
	case c.take("?="):
		op, empty = opLook, true
	case c.take("?!"):
		op, empty = opLookNot, true
	case c.take("?>"):
		op = opAtomic
	case c.take("?"):
		c.fail("a group of this kind is not supported; supported are (?:, (?i:, (?=, (?! and (?>")
	}
	f := c.alternatives()
	c.fold = fold
	if !c.take(")") {
		c.fail("a group is not closed")
	}
	if op >= 0 {
		return sub(op, f, empty || f.empty)
	}
	return f
}

// escape is what follows a backslash.
func (c *regexCompiler) escape() setItem {
	r := c.rune()
	if it, ok := escapeItem(r); ok {
		return it
	}
	single := func(r rune) setItem { return setItem{lo: r, hi: r} }
	switch r {
	case 'n':
		return single('\n')
	case 'r':
		return single('\r')
	case 't':
		return single('\t')
	case 'f':
		return single('\f')
	case 'v':
		return single('\v')
	case 'a':
		return single(7)
	case 'e':
		return single(27)
	case 'p', 'P':
		return c.property(r == 'P')
	case 'x', 'u':
		return single(c.codePoint(r))
	}
	if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		c.fail("the escape \\%c is not supported", r)
	}
	return single(r)
}

func (c *regexCompiler) property(not bool) setItem {
	end := strings.IndexByte(c.src[c.at:], '}')
	if !c.take("{") || end < 0 {
		c.fail(`expected \p{name}`)
		return setItem{}
	}
	name := c.src[c.at : c.at+end-1]
	c.at += end
	if strings.HasPrefix(name, "^") {
		not = !not
		name = name[1:]
	}
	it, err := propertyItem(name, not)
	if err != nil {
		c.fail("%v", err)
	}
	return it
}

// codePoint is \x41, \x{1F600} or \u0041.
func (c *regexCompiler) codePoint(kind rune) rune {
	n := 2
	if kind == 'u' {
		n = 4
	}
	if c.take("{") {
		n = strings.IndexByte(c.src[c.at:], '}')
	}
	if n <= 0 || c.at+n > len(c.src) {
		c.fail("a code point is cut short")
		return 0
	}
	v, err := strconv.ParseUint(c.src[c.at:c.at+n], 16, 32)
	if err != nil || v > utf8.MaxRune {
		c.fail("%q is no code point", c.src[c.at:c.at+n])
		return 0
	}
	c.at += n
	c.take("}")
	return rune(v)
}

// class is what an open square bracket begins.
func (c *regexCompiler) class() *runeSet {
	if c.depth++; c.depth > maxGroups {
		c.fail("classes are nested deeper than %d levels", maxGroups)
		return &runeSet{}
	}
	defer func() { c.depth-- }()
	s := &runeSet{not: c.take("^")}
	for first := true; c.more(); first = false {
		if !first && c.take("]") {
			return s.finish(c.fold)
		}
		if c.take("&&") {
			c.fail("an intersection of classes is not supported")
		}
		if c.take("[") {
			if strings.HasPrefix(c.src[c.at:], ":") {
				c.fail("a POSIX class is not supported; use \\p{…}")
			}
			s.items = append(s.items, setItem{set: c.class()})
			continue
		}
		it := c.member()
		if it.class == 0 && it.table == nil && c.at+1 < len(c.src) && c.src[c.at] == '-' && c.src[c.at+1] != ']' {
			c.at++
			to := c.member()
			if to.class != 0 || to.table != nil || to.lo < it.lo {
				c.fail("a range of characters ends before it begins")
			}
			it.hi = to.lo
		}
		s.items = append(s.items, it)
	}
	c.fail("a class is not closed")
	return s
}

func (c *regexCompiler) member() setItem {
	r := c.rune()
	if r == '\\' {
		return c.escape()
	}
	return setItem{lo: r, hi: r}
}

package grammar

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// alternatives reads a | b; the | may begin a line. within is the terminal
// that is read, nil for a rule.
func (l *larkParser) alternatives(within *larkName) expr {
	if l.depth++; l.depth > maxSchemaDepth {
		l.fail("groups are nested deeper than %d levels", maxSchemaDepth)
	}
	defer func() { l.depth-- }()
	alts := altExpr{l.sequence(within)}
	for {
		at := l.at
		if l.skip(true); !l.take("|") {
			l.at = at
			return alts
		}
		alts = append(alts, l.sequence(within))
	}
}

func (l *larkParser) sequence(within *larkName) expr {
	var seq seqExpr
	for {
		l.skip(false)
		if l.at >= len(l.src) || strings.IndexByte("\n|)]}", l.src[l.at]) >= 0 {
			return seq
		}
		if l.take("->") { // the name of a branch, which shapes the tree only
			l.skip(false)
			l.name()
			return seq
		}
		l.p.spend(1)
		seq = append(seq, l.repeated(l.item(within)))
	}
}

// item reads what a repetition can follow.
func (l *larkParser) item(within *larkName) expr {
	switch c := l.src[l.at]; {
	case c == '(':
		return l.group(within, ")")
	case c == '[':
		return optional(l.group(within, "]"))
	case c == '"':
		return l.terminal(within, l.literal())
	case c == '/':
		return l.terminal(within, l.regex())
	case c == '%':
		if within != nil {
			l.fail("%%json and %%lark are for rules, not for terminals")
		}
		return l.terminal(nil, l.embedded())
	case c == '<':
		l.fail("special tokens such as <name> are not supported; write the text")
	case c == '@':
		l.fail("grammars by name, with @, are not supported")
	case c == '&':
		l.fail("the intersection of terminals, &, is not supported")
	}
	if !isNameByte(l.src[l.at]) {
		l.fail("unexpected %q", l.rune())
	}
	at := l.at
	name := l.name()
	n := l.named(name, at, isTerminal(name))
	switch {
	case within == nil && n.terminal:
		return l.terminal(nil, ruleExpr(n.rule))
	case within != nil && !n.terminal:
		l.at = at
		l.fail("a terminal cannot contain the rule %q", name)
	case within != nil:
		within.uses = append(within.uses, name)
	}
	return ruleExpr(n.rule)
}

// terminal puts what is ignored behind a terminal of a rule.
func (l *larkParser) terminal(within *larkName, x expr) expr {
	if within != nil || !strings.Contains(l.src, "%ignore") {
		return x
	}
	return seqExpr{x, ruleExpr(l.ignore)}
}

func (l *larkParser) group(within *larkName, end string) expr {
	l.at++
	x := l.alternatives(within)
	if l.skip(false); !l.take(end) {
		l.fail("expected %s", end)
	}
	return x
}

// literal reads "a", "a"i and "a".."z".
func (l *larkParser) literal() expr {
	at := l.at
	text := l.text()
	if l.take("i") {
		return l.anyCase(text)
	}
	after := l.at
	if l.skip(false); !l.take("..") {
		l.at = after
		return bytesExpr(text)
	}
	if l.skip(false); l.at >= len(l.src) || l.src[l.at] != '"' {
		l.fail("expected a string after ..")
	}
	last := l.text()
	lo, hi := []rune(text), []rune(last)
	if len(lo) != 1 || len(hi) != 1 || lo[0] > hi[0] {
		l.at = at
		l.fail("a range is of two characters, of which the first is not behind the second")
	}
	return runeRanges([]rune{lo[0], hi[0]})
}

// anyCase is a text in which letters may be large or small.
func (l *larkParser) anyCase(text string) expr {
	var seq seqExpr
	for i := range len(text) {
		c := text[i]
		if c >= utf8.RuneSelf {
			l.fail("only a string of ASCII can have the flag i; use a regular expression")
		}
		set := byteRange(c, c)
		if low := c | 0x20; low >= 'a' && low <= 'z' {
			set.add(low, low)
			set.add(low-0x20, low-0x20)
		}
		seq = append(seq, setExpr(set))
	}
	return seq
}

// regex reads /a/ and its flags.
func (l *larkParser) regex() expr {
	from := l.at
	for l.at++; l.at < len(l.src) && l.src[l.at] != '/'; l.at++ {
		if l.src[l.at] == '\\' {
			l.at++
		}
	}
	if l.at >= len(l.src) {
		l.at = from
		l.fail("the regular expression is not closed")
	}
	pattern := l.src[from+1 : l.at]
	for l.at++; l.at < len(l.src) && l.src[l.at] >= 'a' && l.src[l.at] <= 'z'; l.at++ {
		switch c := l.src[l.at]; c {
		case 'i', 's':
			pattern = "(?" + string(c) + ":" + pattern + ")"
		case 'u':
		default:
			l.fail("of the flags of a regular expression i, s and u are supported")
		}
	}
	line := 1 + strings.Count(l.src[:from], "\n")
	b := &regexBuilder{p: l.p, what: "the grammar, line " + strconv.Itoa(line) + ": the regular expression", char: runeRanges}
	return b.build(pattern, false)
}

// embedded reads %json with a schema, and %lark with a grammar of its own.
func (l *larkParser) embedded() expr {
	switch {
	case l.take("%json"):
		l.skip(true)
		dec := json.NewDecoder(bytes.NewReader([]byte(l.src[l.at:])))
		var schema json.RawMessage
		if err := dec.Decode(&schema); err != nil {
			l.fail("%%json has no JSON schema: %w", err)
		}
		l.at += int(dec.InputOffset())
		return buildSchema(l.p, schema, false)
	case l.take("%lark"):
		if l.skip(true); !l.take("{") {
			l.fail("expected { after %%lark")
		}
		if l.depth++; l.depth > maxSchemaDepth {
			l.fail("grammars are nested deeper than %d levels", maxSchemaDepth)
		}
		inner := newLarkParser(l.p, l.src, l.at)
		inner.nested, inner.depth = true, l.depth
		x := inner.document()
		l.depth--
		if l.at = inner.at; !l.take("}") {
			l.fail("%%lark is not closed")
		}
		return x
	}
	l.fail("within a rule only %%json and %%lark are supported")
	return nil
}

// repeated reads one of ? * + ~n ~n..m {n,m} behind an item.
func (l *larkParser) repeated(x expr) expr {
	at := l.at
	l.skip(false)
	least, most := 1, 1
	switch {
	case l.take("?"):
		least = 0
	case l.take("*"):
		least, most = 0, -1
	case l.take("+"):
		most = -1
	case l.take("~"):
		least = l.number()
		most = least
		if l.skip(false); l.take("..") {
			most = l.number()
		}
	case l.take("{"):
		least, most = l.counts()
	default:
		l.at = at
		return x
	}
	if most >= 0 && most < least {
		l.fail("a repetition ends before it begins")
	}
	l.p.spend(max(least, most))
	return repExpr{x, least, most}
}

// counts reads n}, n,}, ,m} and n,m}.
func (l *larkParser) counts() (least, most int) {
	if l.skip(false); !l.next(',') {
		least = l.number()
	}
	most = least
	if l.skip(false); l.take(",") {
		most = -1
		if l.skip(false); !l.next('}') {
			most = l.number()
		}
	}
	if l.skip(false); !l.take("}") {
		l.fail("a repetition is not closed")
	}
	return least, most
}

func (l *larkParser) next(c byte) bool { return l.at < len(l.src) && l.src[l.at] == c }

func (l *larkParser) number() int {
	l.skip(false)
	from := l.at
	for l.at < len(l.src) && l.src[l.at] >= '0' && l.src[l.at] <= '9' {
		l.at++
	}
	n, err := strconv.Atoi(l.src[from:l.at])
	if err != nil || n > maxParts {
		l.at = from
		l.fail("expected a count up to %d", maxParts)
	}
	return n
}

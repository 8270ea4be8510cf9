package grammar

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// LikelyLark reports whether a grammar is in the notation of Lark: whether no
// line of it, comments aside, has the ::= of EBNF.
func LikelyLark(src string) bool {
	for line := range strings.Lines(src) {
		if i := strings.IndexByte(line, '#'); i >= 0 {
			line = line[:i]
		}
		if i := strings.Index(line, "//"); i >= 0 {
			line = line[:i]
		}
		if strings.Contains(line, "::=") {
			return false
		}
	}
	return true
}

// larkParser reads a Lark grammar:
//
//	?start: sum                      // the output
//	?sum: NUMBER | sum "+" NUMBER -> add
//	%import common.NUMBER
//	%ignore " "
//
// What is ignored may stand behind each terminal of a rule, and before the
// first with the option allow_initial_skip.
type larkParser struct {
	p       *program
	src     string
	at      int
	depth   int
	nested  bool // within %lark { }
	names   map[string]*larkName
	order   []string // of names, for errors that do not depend on chance
	ignored altExpr
	ignore  int // the rule of what may be ignored
	initial bool
}

// larkName is a rule or a terminal.
type larkName struct {
	rule     int
	terminal bool
	defined  bool
	at       int      // where it is first met
	uses     []string // the terminals within a terminal
}

// buildLark returns what a grammar's rule start matches.
func buildLark(p *program, src string) expr {
	if len(src) > maxEBNF {
		failf("the grammar has %d bytes; at most %d are allowed", len(src), maxEBNF)
	}
	l := newLarkParser(p, src, 0)
	return l.document()
}

func newLarkParser(p *program, src string, at int) *larkParser {
	return &larkParser{p: p, src: src, at: at, names: map[string]*larkName{}, ignore: p.newRule()}
}

// document reads statements up to the end, or to the } of a nested grammar.
func (l *larkParser) document() expr {
	first := len(l.p.rules)
	for l.skip(true); l.at < len(l.src) && !(l.nested && l.src[l.at] == '}'); l.skip(true) {
		l.statement()
		if l.skip(false); l.at < len(l.src) && l.src[l.at] != '\n' && !(l.nested && l.src[l.at] == '}') {
			l.fail("unexpected %q", l.rune())
		}
	}
	start := l.names["start"]
	if start == nil || !start.defined {
		l.fail("there is no rule named start")
	}
	for _, name := range l.order {
		if n := l.names[name]; !n.defined {
			l.at = n.at
			l.fail("there is no rule or terminal named %q", name)
		}
	}
	l.checkTerminals()
	l.p.rules[l.ignore] = repExpr{l.ignored, 0, -1}
	if len(l.ignored) == 0 {
		l.p.rules[l.ignore] = seqExpr{}
	}
	l.p.unfoldLeft(first)
	if l.initial {
		return seqExpr{ruleExpr(l.ignore), ruleExpr(start.rule)}
	}
	return ruleExpr(start.rule)
}

// statement reads a rule, a terminal or a directive.
func (l *larkParser) statement() {
	if l.src[l.at] == '%' {
		l.directive()
		return
	}
	if l.src[l.at] == '?' || l.src[l.at] == '!' { // they shape the tree only
		l.at++
	}
	at := l.at
	name := l.name()
	n := l.named(name, at, isTerminal(name))
	if n.defined {
		l.at = at
		l.fail("%q is there twice", name)
	}
	n.defined = true
	l.unsupported("[", "attributes of rules")
	l.unsupported("{", "templates")
	l.unsupported(".", "priorities")
	if l.skip(false); !l.take(":") {
		l.fail("expected : after the name")
	}
	var within *larkName
	if n.terminal {
		within = n
	}
	x := l.alternatives(within)
	l.p.rules[n.rule] = x
}

// named returns what a name stands for.
func (l *larkParser) named(name string, at int, terminal bool) *larkName {
	n := l.names[name]
	if n == nil {
		n = &larkName{rule: l.p.newRule(), terminal: terminal, at: at}
		l.names[name] = n
		l.order = append(l.order, name)
	}
	return n
}

// isTerminal reports whether a name is a terminal's: its first letter is
// large.
func isTerminal(name string) bool {
	name = strings.TrimLeft(name, "_")
	return name != "" && name[0] >= 'A' && name[0] <= 'Z'
}

// checkTerminals refuses a terminal that contains itself.
func (l *larkParser) checkTerminals() {
	state := map[string]int{}
	var visit func(name string)
	visit = func(name string) {
		switch state[name] {
		case 1:
			l.at = l.names[name].at
			l.fail("the terminal %q contains itself; a rule, with a small first letter, may", name)
		case 2:
			return
		}
		state[name] = 1
		for _, used := range l.names[name].uses {
			visit(used)
		}
		state[name] = 2
	}
	for _, name := range l.order {
		visit(name)
	}
}

func (l *larkParser) fail(format string, args ...any) {
	(&ebnfParser{src: l.src, at: l.at}).fail(format, args...)
}

func (l *larkParser) unsupported(sign, what string) {
	if strings.HasPrefix(l.src[l.at:], sign) {
		l.fail("%s are not supported", what)
	}
}

func (l *larkParser) rune() rune {
	r, _ := utf8.DecodeRuneInString(l.src[l.at:])
	return r
}

func (l *larkParser) take(s string) bool {
	if strings.HasPrefix(l.src[l.at:], s) {
		l.at += len(s)
		return true
	}
	return false
}

// skip passes over spaces and comments, and over line ends if lines is set.
func (l *larkParser) skip(lines bool) {
	for l.at < len(l.src) {
		c := l.src[l.at]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || lines && c == '\n':
			l.at++
		case c == '#' || strings.HasPrefix(l.src[l.at:], "//"):
			n := strings.IndexByte(l.src[l.at:], '\n')
			if n < 0 {
				n = len(l.src) - l.at
			}
			l.at += n
		default:
			return
		}
	}
}

func (l *larkParser) name() string {
	from := l.at
	for l.at < len(l.src) && isNameByte(l.src[l.at]) && !strings.HasPrefix(l.src[l.at:], "->") {
		l.at++
	}
	if name := l.src[from:l.at]; name != "" && (name[0] < '0' || name[0] > '9') && name[0] != '-' {
		return name
	}
	l.at = from
	l.fail("expected the name of a rule or a terminal")
	return ""
}

// text reads a string, which is written as in JSON.
func (l *larkParser) text() string {
	from := l.at
	for l.at++; l.at < len(l.src) && l.src[l.at] != '"' && l.src[l.at] != '\n'; l.at++ {
		if l.src[l.at] == '\\' {
			l.at++
		}
	}
	l.at++
	var s string
	if l.at > len(l.src) || json.Unmarshal([]byte(l.src[from:l.at]), &s) != nil || !utf8.ValidString(l.src[from:l.at]) {
		l.at = from
		l.fail("the string is not closed in its line, or not written as JSON has it")
	}
	l.p.spend(len(s))
	return s
}

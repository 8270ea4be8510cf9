package template

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind is the kind of a token of the template language.
type tokenKind int

const (
	tokData tokenKind = iota // text between the tags
	tokPrintBegin
	tokPrintEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
	tokEOF
)

// token is a word of a template.
type token struct {
	kind tokenKind
	text string // the name, operator, or text of the string
	i    int64
	f    float64
	line int
}

// lexer cuts a template into tokens. Spaces around tags are dealt with here:
// the parser never sees what trim_blocks, lstrip_blocks or a minus takes
// away.
type lexer struct {
	src    string
	at     int
	line   int
	tokens []token
	// lineStart says that the text at src[at:] begins a line, or follows a
	// line's end that a tag took away.
	lineStart bool
}

// lex returns the tokens of a template, ended by tokEOF.
func lex(src string) []token {
	src = strings.ReplaceAll(src, "\r\n", "\n")
	src = strings.ReplaceAll(src, "\r", "\n")
	src = strings.TrimSuffix(src, "\n")
	l := &lexer{src: src, line: 1, lineStart: true}
	for l.at < len(l.src) {
		l.data()
	}
	l.emit(token{kind: tokEOF})
	return l.tokens
}

func (l *lexer) fail(format string, args ...any) { failAt(l.line, format, args...) }

func (l *lexer) emit(t token) {
	t.line = l.line
	l.tokens = append(l.tokens, t)
}

// advance moves past n bytes and counts their lines.
func (l *lexer) advance(n int) string {
	s := l.src[l.at : l.at+n]
	l.line += strings.Count(s, "\n")
	l.at += n
	return s
}

// data reads text up to the next tag, and the tag.
func (l *lexer) data() {
	rest := l.src[l.at:]
	n := nextTag(rest)
	if n < 0 {
		l.emit(token{kind: tokData, text: rest})
		l.advance(len(rest))
		return
	}
	text, open := rest[:n], rest[n:n+2]
	sign := byte(0)
	if n+2 < len(rest) && (rest[n+2] == '-' || rest[n+2] == '+') {
		sign = rest[n+2]
	}
	kept := text
	if sign == '-' {
		kept = strings.TrimRightFunc(text, unicode.IsSpace)
	} else if sign != '+' && open != "{{" {
		kept = l.stripLine(text)
	}
	if kept != "" {
		l.emit(token{kind: tokData, text: kept})
	}
	l.advance(n + 2)
	if sign != 0 {
		l.advance(1)
	}
	switch open {
	case "{#":
		l.comment()
	case "{{":
		l.emit(token{kind: tokPrintBegin})
		l.code("}}", tokPrintEnd)
	case "{%":
		if l.raw() {
			return
		}
		l.emit(token{kind: tokBlockBegin})
		l.code("%}", tokBlockEnd)
	}
}

// nextTag returns where the next tag opens, -1 if none does.
func nextTag(s string) int {
	for i := 0; i+1 < len(s); i++ {
		n := strings.IndexByte(s[i:], '{')
		if n < 0 || i+n+1 >= len(s) {
			return -1
		}
		i += n
		if c := s[i+1]; c == '{' || c == '%' || c == '#' {
			return i
		}
	}
	return -1
}

// stripLine returns text without the spaces of its last line, if there is
// nothing else in that line.
func (l *lexer) stripLine(text string) string {
	from := strings.LastIndexByte(text, '\n') + 1
	if from == 0 && !l.lineStart || strings.TrimSpace(text[from:]) != "" {
		return text
	}
	return text[:from]
}

// comment skips a comment's text and its end.
func (l *lexer) comment() {
	n := strings.Index(l.src[l.at:], "#}")
	if n < 0 {
		l.fail("a comment is not closed; expected #}")
	}
	sign := byte(0)
	if n > 0 {
		sign = l.src[l.at+n-1]
	}
	l.advance(n + 2)
	l.afterTag(sign, true)
}

// afterTag takes away the spaces or the line end that belong to a tag that
// ended here.
func (l *lexer) afterTag(sign byte, block bool) {
	rest := l.src[l.at:]
	l.lineStart = false
	switch {
	case sign == '-':
		n := len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
		l.lineStart = strings.HasSuffix(l.advance(n), "\n")
	case sign != '+' && block && strings.HasPrefix(rest, "\n"):
		l.advance(1)
		l.lineStart = true
	}
}

// raw reads a raw block whole, if one begins here.
func (l *lexer) raw() bool {
	rest := strings.TrimLeft(l.src[l.at:], " \t\n")
	if !strings.HasPrefix(rest, "raw") {
		return false
	}
	rest = strings.TrimLeft(rest[3:], " \t\n")
	sign := byte(0)
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		sign = rest[0]
		rest = rest[1:]
	}
	if !strings.HasPrefix(rest, "%}") {
		return false
	}
	l.advance(len(l.src) - l.at - len(rest) + 2)
	l.afterTag(sign, true)
	for at := l.at; ; {
		n := strings.Index(l.src[at:], "{%")
		if n < 0 {
			l.fail("a raw block is not closed; expected endraw")
		}
		open := at + n
		inner := l.src[open+2:]
		before, after := byte(0), byte(0)
		if inner != "" && (inner[0] == '-' || inner[0] == '+') {
			before, inner = inner[0], inner[1:]
		}
		inner = strings.TrimLeft(inner, " \t\n")
		if !strings.HasPrefix(inner, "endraw") {
			at = open + 2
			continue
		}
		inner = strings.TrimLeft(inner[6:], " \t\n")
		if inner != "" && (inner[0] == '-' || inner[0] == '+') {
			after, inner = inner[0], inner[1:]
		}
		if !strings.HasPrefix(inner, "%}") {
			at = open + 2
			continue
		}
		l.rawText(l.src[l.at:open], before)
		l.advance(len(l.src) - l.at - len(inner) + 2)
		l.afterTag(after, true)
		return true
	}
}

func (l *lexer) rawText(text string, sign byte) {
	if sign == '-' {
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	} else if sign != '+' {
		text = l.stripLine(text)
	}
	if text != "" {
		l.emit(token{kind: tokData, text: text})
	}
}

// operators are the operators and brackets, the longer before the shorter.
var operators = []string{"//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", ".", ",", ":", "|", "(", ")", "[", "]", "{", "}"}

// code reads the inside of a tag up to its end.
func (l *lexer) code(end string, kind tokenKind) {
	depth := 0
	for {
		rest := l.src[l.at:]
		n := len(rest) - len(strings.TrimLeft(rest, " \t\n"))
		l.advance(n)
		rest = rest[n:]
		if rest == "" {
			l.fail("a tag is not closed; expected %s", end)
		}
		if depth == 0 {
			sign := byte(0)
			if rest[0] == '-' || rest[0] == '+' && kind == tokBlockEnd {
				sign = rest[0]
			}
			if strings.HasPrefix(rest, end) || sign != 0 && strings.HasPrefix(rest[1:], end) {
				l.emit(token{kind: kind})
				l.advance(strings.Index(rest, end) + len(end))
				if !strings.HasPrefix(rest, end) {
					l.afterTag(sign, kind == tokBlockEnd)
				} else {
					l.afterTag(0, kind == tokBlockEnd)
				}
				return
			}
		}
		depth += l.word(rest)
		if depth < 0 {
			l.fail("a bracket is closed that was not opened")
		}
	}
}

// word reads one token and returns how it changes the depth of brackets.
func (l *lexer) word(rest string) int {
	c := rest[0]
	switch {
	case c == '"' || c == '\'':
		l.stringToken(rest)
		return 0
	case c >= '0' && c <= '9':
		l.numberToken(rest)
		return 0
	}
	if n := nameLength(rest); n > 0 {
		l.emit(token{kind: tokName, text: rest[:n]})
		l.advance(n)
		return 0
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			l.emit(token{kind: tokOp, text: op})
			l.advance(len(op))
			switch op {
			case "(", "[", "{":
				return 1
			case ")", "]", "}":
				return -1
			}
			return 0
		}
	}
	r, _ := utf8.DecodeRuneInString(rest)
	l.fail("unexpected character %q", r)
	return 0
}

func nameLength(s string) int {
	for i, r := range s {
		if r == '_' || unicode.IsLetter(r) || i > 0 && unicode.IsDigit(r) {
			continue
		}
		return i
	}
	return len(s)
}

// numberToken reads an int or a float. Underscores may stand between digits.
func (l *lexer) numberToken(rest string) {
	digits := func(i int) int {
		for i < len(rest) && (rest[i] >= '0' && rest[i] <= '9' || rest[i] == '_') {
			i++
		}
		return i
	}
	n := digits(0)
	float := false
	if n+1 < len(rest) && rest[n] == '.' && rest[n+1] >= '0' && rest[n+1] <= '9' {
		float = true
		n = digits(n + 1)
	}
	if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
		m := n + 1
		if m < len(rest) && (rest[m] == '+' || rest[m] == '-') {
			m++
		}
		if m < len(rest) && rest[m] >= '0' && rest[m] <= '9' {
			float = true
			n = digits(m)
		}
	}
	s := strings.ReplaceAll(rest[:n], "_", "")
	t := token{kind: tokInt, text: s}
	var err error
	if float {
		t.kind = tokFloat
		t.f, err = strconv.ParseFloat(s, 64)
	} else {
		t.i, err = strconv.ParseInt(s, 10, 64)
	}
	if err != nil {
		l.fail("the number %s is outside the range of 64 bits", s)
	}
	l.emit(t)
	l.advance(n)
}

// stringToken reads a string and its escapes.
func (l *lexer) stringToken(rest string) {
	quote := rest[0]
	n := 1
	for n < len(rest) && rest[n] != quote {
		if rest[n] == '\\' {
			n++
		}
		n++
	}
	if n >= len(rest) {
		l.fail("a string is not closed; expected %c", quote)
	}
	l.emit(token{kind: tokString, text: l.unescape(rest[1:n])})
	l.advance(n + 1)
}

// unescape resolves the escapes of a Python string; unknown ones stay.
func (l *lexer) unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	plain := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '\\': '\\', '\'': '\'', '"': '"', 'a': 7, 'b': 8, 'f': 12, 'v': 11}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		c := s[i]
		switch {
		case plain[c] != 0:
			b.WriteByte(plain[c])
		case c == '\n':
		case c == 'x' || c == 'u' || c == 'U':
			n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			if i+n >= len(s) {
				l.fail("the escape \\%c is cut short", c)
			}
			v, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
			if err != nil || v > utf8.MaxRune {
				l.fail("the escape \\%c%s is not a character", c, s[i+1:i+1+n])
			}
			b.WriteRune(rune(v))
			i += n
		case c >= '0' && c <= '7':
			n := 1
			for n < 3 && i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '7' {
				n++
			}
			v, _ := strconv.ParseUint(s[i:i+n], 8, 32)
			b.WriteRune(rune(v))
			i += n - 1
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

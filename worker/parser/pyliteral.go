package parser

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parsePythonCall reads f(a=1, b='x') and returns the name and the arguments
// as JSON. Arguments without a name, and values that are no literals, are not
// taken.
func parsePythonCall(s string) (name, args string, ok bool) {
	open := strings.IndexByte(s, '(')
	name = s[:open]
	if strings.HasSuffix(name, ".") {
		return "", "", false
	}
	l := &pyLiteral{s: s[open+1 : len(s)-1]}
	l.out = append(l.out, '{')
	for n := 0; ; n++ {
		l.space()
		if l.at == len(l.s) {
			break
		}
		if n > 0 {
			l.expect(',')
			if l.space(); l.at == len(l.s) {
				break
			}
			l.out = append(l.out, ", "...)
		}
		from := l.at
		for l.at < len(l.s) && (isNameStart(l.s[l.at]) || l.s[l.at] >= '0' && l.s[l.at] <= '9') {
			l.at++
		}
		if from == l.at {
			l.bad = true
		}
		l.text(l.s[from:l.at])
		l.space()
		l.expect('=')
		l.out = append(l.out, ": "...)
		l.value(0)
		if l.bad {
			return "", "", false
		}
	}
	return name, string(l.out) + "}", !l.bad
}

// pyLiteral turns Python literals into JSON.
type pyLiteral struct {
	s   string
	at  int
	out []byte
	bad bool
}

func (l *pyLiteral) space() {
	for l.at < len(l.s) && isBlank(l.s[l.at]) {
		l.at++
	}
}

func (l *pyLiteral) peek() byte {
	if l.at < len(l.s) {
		return l.s[l.at]
	}
	return 0
}

func (l *pyLiteral) expect(b byte) {
	if l.peek() != b {
		l.bad = true
		return
	}
	l.at++
}

// text writes a JSON string.
func (l *pyLiteral) text(s string) { l.out = append(l.out, jsonText(s)...) }

// jsonText returns s as a JSON string without HTML's escapes.
func jsonText(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// maxLiteral bounds how deep literals nest.
const maxLiteral = 64

func (l *pyLiteral) value(depth int) {
	l.space()
	if depth > maxLiteral {
		l.bad = true
	}
	if l.bad {
		return
	}
	switch c := l.peek(); {
	case c == '"' || c == '\'':
		l.text(l.str())
	case c == '[':
		l.items(']', depth, false)
	case c == '(':
		l.items(')', depth, false)
	case c == '{':
		l.items('}', depth, true)
	default:
		l.word()
	}
	l.space()
}

// items reads a list, a tuple or a dict.
func (l *pyLiteral) items(end byte, depth int, pairs bool) {
	l.at++
	open, shut := byte('['), byte(']')
	if pairs {
		open, shut = '{', '}'
	}
	l.out = append(l.out, open)
	for n := 0; !l.bad; n++ {
		l.space()
		if n > 0 && l.peek() != end {
			l.expect(',')
			l.space()
		}
		if l.peek() == end {
			l.at++
			break
		}
		if n > 0 {
			l.out = append(l.out, ", "...)
		}
		if pairs {
			if c := l.peek(); c != '"' && c != '\'' {
				l.bad = true
				return
			}
			l.text(l.str())
			l.space()
			l.expect(':')
			l.out = append(l.out, ": "...)
		}
		l.value(depth + 1)
	}
	l.out = append(l.out, shut)
}

// word reads a number, True, False or None.
func (l *pyLiteral) word() {
	from := l.at
	for l.at < len(l.s) && strings.IndexByte(",)]} \t\r\n:=", l.s[l.at]) < 0 {
		l.at++
	}
	w := l.s[from:l.at]
	words := map[string]string{"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
	if j, ok := words[w]; ok {
		l.out = append(l.out, j...)
		return
	}
	w = strings.TrimPrefix(strings.ReplaceAll(w, "_", ""), "+")
	if !json.Valid([]byte(w)) || w == "" {
		f, err := strconv.ParseFloat(w, 64)
		if err != nil || strings.ContainsAny(w, "xXnNiI") {
			l.bad = true
			return
		}
		w = strconv.FormatFloat(f, 'g', -1, 64)
	}
	l.out = append(l.out, w...)
}

// str reads a string with its escapes.
func (l *pyLiteral) str() string {
	quote := l.s[l.at]
	l.at++
	var b strings.Builder
	for l.at < len(l.s) {
		c := l.s[l.at]
		l.at++
		if c == quote {
			return b.String()
		}
		if c != '\\' || l.at == len(l.s) {
			b.WriteByte(c)
			continue
		}
		l.escape(&b)
	}
	l.bad = true
	return ""
}

func (l *pyLiteral) escape(b *strings.Builder) {
	c := l.s[l.at]
	l.at++
	plain := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', '\\': '\\', '\'': '\'', '"': '"', '0': 0}
	if p, ok := plain[c]; ok {
		b.WriteByte(p)
		return
	}
	if n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]; n > 0 && l.at+n <= len(l.s) {
		if v, err := strconv.ParseUint(l.s[l.at:l.at+n], 16, 32); err == nil && v <= utf8.MaxRune {
			b.WriteRune(rune(v))
			l.at += n
			return
		}
	}
	b.WriteByte('\\')
	b.WriteByte(c)
}

package lines

import (
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"roundhouse/balancer/wire"
)

// Line is a line as slog's handlers write it, as text or as JSON.
type Line struct {
	b    []byte
	json bool
}

// Begin begins a line behind b.
func Begin(b []byte, json bool, at time.Time) Line {
	if json {
		b = append(at.AppendFormat(append(b, `{"time":"`...), time.RFC3339Nano), `","level":"INFO","msg":"request"`...)
	} else {
		b = append(at.AppendFormat(append(b, "time="...), "2006-01-02T15:04:05.000Z07:00"), " level=INFO msg=request"...)
	}
	return Line{b, json}
}

// Name begins an attribute.
func (l *Line) Name(s string) {
	if l.json {
		l.b = append(append(append(l.b, `,"`...), s...), `":`...)
	} else {
		l.b = append(append(append(l.b, ' '), s...), '=')
	}
}

// Number writes a count.
func (l *Line) Number(name string, v int64) {
	l.Name(name)
	l.b = strconv.AppendInt(l.b, v, 10)
}

// Seconds writes nanoseconds as seconds, to the microsecond.
func (l *Line) Seconds(name string, ns int64) {
	l.Name(name)
	l.b = strconv.AppendFloat(l.b, float64(ns)/1e9, 'f', 6, 64)
}

// Quoted writes what needs no quotes as text.
func (l *Line) Quoted(put func([]byte) []byte) {
	if !l.json {
		l.b = put(l.b)
		return
	}
	l.b = append(put(append(l.b, '"')), '"')
}

// Text writes a text, quoted if it must be.
func (l *Line) Text(name, v string) {
	l.Name(name)
	switch {
	case !l.json && plainText(v):
		l.b = append(l.b, v...)
	case !l.json:
		l.b = strconv.AppendQuote(l.b, v)
	case plainJSON(v):
		l.b = append(append(append(l.b, '"'), v...), '"')
	default:
		l.b = append(l.b, wire.Quote(v)...)
	}
}

// End returns the whole line.
func (l *Line) End() []byte {
	if l.json {
		l.b = append(l.b, '}')
	}
	return append(l.b, '\n')
}

// plainText reports whether a value can be told from what follows it.
func plainText(s string) bool {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c <= ' ' || c == '=' || c == '"' || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return false
		}
		i += n
	}
	return s != ""
}

// plainJSON reports whether a string is the same within the quotes of JSON.
func plainJSON(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

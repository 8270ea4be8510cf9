package lines

import (
	"strconv"
	"sync/atomic"
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
	s := secondOf(at)
	if json {
		b = appendNanos(append(append(b, `{"time":"`...), s.front...), at.Nanosecond())
		b = append(append(b, s.zone...), `","level":"INFO","msg":"request"`...)
	} else {
		b = append(append(append(b, "time="...), s.front...), '.')
		b = appendDigits(b, uint64(at.Nanosecond()/1e6), 3)
		b = append(append(b, s.zone...), " level=INFO msg=request"...)
	}
	return Line{b, json}
}

// second is a second as lines write it, in front of its fraction and behind it.
type second struct {
	unix        int64
	in          *time.Location
	front, zone string
}

// lastSecond is kept, for most lines are of the same second as the one before.
var lastSecond atomic.Pointer[second]

func secondOf(at time.Time) *second {
	s := lastSecond.Load()
	if s == nil || s.unix != at.Unix() || s.in != at.Location() {
		s = &second{at.Unix(), at.Location(), at.Format("2006-01-02T15:04:05"), at.Format("Z07:00")}
		lastSecond.Store(s)
	}
	return s
}

// appendNanos writes the fraction of a second without zeros at its end, as
// time.RFC3339Nano does.
func appendNanos(b []byte, ns int) []byte {
	if ns == 0 {
		return b
	}
	n := 9
	for ; ns%10 == 0; n-- {
		ns /= 10
	}
	return appendDigits(append(b, '.'), uint64(ns), n)
}

// appendDigits writes the last n digits of a number.
func appendDigits(b []byte, v uint64, n int) []byte {
	b = append(b, "000000000"[:n]...)
	for i := len(b) - 1; n > 0; i, n = i-1, n-1 {
		b[i] = byte('0' + v%10)
		v /= 10
	}
	return b
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
	if ns < 0 {
		l.b, ns = append(l.b, '-'), -ns
	}
	us := (uint64(ns) + 500) / 1000
	l.b = append(strconv.AppendUint(l.b, us/1e6, 10), '.')
	l.b = appendDigits(l.b, us%1e6, 6)
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

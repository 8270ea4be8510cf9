package balancer

import (
	"log/slog"
	"strconv"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// logAccess writes one line for a request that has ended: sizes and times, no
// prompt, no answer, no key. It has the form of the rest of the log, and is
// encoded here because that costs no allocation.
func (d *Door) logAccess(v *view, a *asked, r *record) {
	if d.opts.Access == nil || v.set.Log.Level > slog.LevelInfo {
		return
	}
	lent := accessLines.Get().(*[]byte)
	defer accessLines.Put(lent)
	l := beginLine((*lent)[:0], v.set.Log.Format == "json", a.wall.Add(time.Duration(r.ended-a.start)))
	l.text("request", a.id)
	if a.client.IsValid() {
		l.name("client")
		l.quoted(func(b []byte) []byte { return a.client.AppendTo(b) })
	}
	l.text("path", a.path)
	l.number("status", int64(r.status))
	l.text("outcome", r.outcome)
	l.text("pool", a.pool.name)
	l.text("worker", r.worker)
	l.text("model", a.model)
	l.seconds("seconds", r.ended-a.start)
	l.seconds("queue_seconds", r.queued)
	if r.first > 0 {
		l.seconds("ttft_seconds", r.first-a.start)
	}
	if r.usage.Known {
		l.number("prompt_tokens", r.usage.Prompt)
		l.number("cached_tokens", max(0, r.usage.Cached))
		l.number("generated_tokens", r.usage.Generated)
	}
	if a.key != nil {
		l.text("key", a.key.name)
	}
	if r.resumes > 0 {
		l.number("resumes", int64(r.resumes))
	}
	*lent = l.end()
	d.opts.Access.Write(*lent)
}

// accessLines are lent for encoding a line.
var accessLines = sync.Pool{New: func() any { b := make([]byte, 0, 512); return &b }}

// accessLine is a line as slog's handlers write it, as text or as JSON.
type accessLine struct {
	b    []byte
	json bool
}

func beginLine(b []byte, json bool, at time.Time) accessLine {
	if json {
		b = append(at.AppendFormat(append(b, `{"time":"`...), time.RFC3339Nano), `","level":"INFO","msg":"request"`...)
	} else {
		b = append(at.AppendFormat(append(b, "time="...), "2006-01-02T15:04:05.000Z07:00"), " level=INFO msg=request"...)
	}
	return accessLine{b, json}
}

func (l *accessLine) name(s string) {
	if l.json {
		l.b = append(append(append(l.b, `,"`...), s...), `":`...)
	} else {
		l.b = append(append(append(l.b, ' '), s...), '=')
	}
}

func (l *accessLine) number(name string, v int64) {
	l.name(name)
	l.b = strconv.AppendInt(l.b, v, 10)
}

// seconds writes nanoseconds as seconds, to the microsecond.
func (l *accessLine) seconds(name string, ns int64) {
	l.name(name)
	l.b = strconv.AppendFloat(l.b, float64(ns)/1e9, 'f', 6, 64)
}

// quoted writes what needs no quotes as text.
func (l *accessLine) quoted(put func([]byte) []byte) {
	if !l.json {
		l.b = put(l.b)
		return
	}
	l.b = append(put(append(l.b, '"')), '"')
}

func (l *accessLine) text(name, v string) {
	l.name(name)
	switch {
	case !l.json && plainText(v):
		l.b = append(l.b, v...)
	case !l.json:
		l.b = strconv.AppendQuote(l.b, v)
	case plainJSON(v):
		l.b = append(append(append(l.b, '"'), v...), '"')
	default:
		l.b = append(l.b, quote(v)...)
	}
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

func (l *accessLine) end() []byte {
	if l.json {
		l.b = append(l.b, '}')
	}
	return append(l.b, '\n')
}

// droppedLines is how many lines of the log were lost.
func (d *Door) droppedLines() float64 {
	if d.opts.Dropped == nil {
		return 0
	}
	return float64(d.opts.Dropped())
}

package template

import (
	"slices"
	"strings"
	"unicode/utf8"

	"roundhouse/worker/tokenizer"
)

// text is a string that knows which of its bytes came from outside.
type text struct {
	s       string
	content []span // ascending, apart, never empty

	// html marks what safe and escape give: text that is joined to it is
	// escaped for HTML. Few templates mean that, but some do it.
	html bool
}

// span is a range of bytes [from, to).
type span struct{ from, to int }

// literal is text that the template wrote.
func literal(s string) text { return text{s: s} }

// untrusted is text that came from outside.
func untrusted(s string) text {
	if s == "" {
		return text{}
	}
	return text{s: s, content: []span{{0, len(s)}}}
}

// slice returns the bytes [from, to) of t.
func (t text) slice(from, to int) text {
	out := text{s: t.s[from:to], html: t.html}
	for _, c := range t.content {
		lo, hi := max(c.from, from), min(c.to, to)
		if lo < hi {
			out.content = append(out.content, span{lo - from, hi - from})
		}
	}
	return out
}

// length returns the number of characters.
func (t text) length() int { return utf8.RuneCountInString(t.s) }

// offset returns the byte at which character n begins, len(t.s) past the end.
func (t text) offset(n int) int {
	for i := range t.s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(t.s)
}

// mapped returns t with f applied to each part that has one origin.
func (t text) mapped(f func(string) string) text {
	if len(t.content) == 0 {
		return text{s: f(t.s), html: t.html}
	}
	var b builder
	at := 0
	for _, c := range t.content {
		b.addString(f(t.s[at:c.from]))
		b.add(untrusted(f(t.s[c.from:c.to])))
		at = c.to
	}
	b.addString(f(t.s[at:]))
	out := b.text()
	out.html = t.html
	return out
}

// trim returns t without the characters at its ends that cut takes.
func (t text) trim(left, right bool, cut func(rune) bool) text {
	from, to := 0, len(t.s)
	if left {
		from = to - len(strings.TrimLeftFunc(t.s, cut))
	}
	if right {
		to = from + len(strings.TrimRightFunc(t.s[from:], cut))
	}
	return t.slice(from, to)
}

// replace returns t with at most n of old replaced, all if n < 0.
func (t text) replace(old, by text, n int) text {
	if old.s == "" {
		return t.interleave(by, n)
	}
	var b builder
	at := 0
	for n != 0 {
		i := strings.Index(t.s[at:], old.s)
		if i < 0 {
			break
		}
		b.add(t.slice(at, at+i))
		b.add(by)
		at += i + len(old.s)
		n--
	}
	b.add(t.slice(at, len(t.s)))
	return b.text()
}

// interleave puts by before each character and at the end, as Python does to
// replace the empty string.
func (t text) interleave(by text, n int) text {
	var b builder
	at := 0
	for i := range t.s {
		if n == 0 {
			break
		}
		b.add(t.slice(at, i))
		b.add(by)
		at = i
		n--
	}
	b.add(t.slice(at, len(t.s)))
	if n != 0 {
		b.add(by)
	}
	return b.text()
}

// builder puts texts together.
type builder struct {
	buf     []byte
	content []span
}

func (b *builder) add(t text) {
	base := len(b.buf)
	b.buf = append(b.buf, t.s...)
	for _, c := range t.content {
		from, to := base+c.from, base+c.to
		if n := len(b.content); n > 0 && b.content[n-1].to == from {
			b.content[n-1].to = to
			continue
		}
		b.content = append(b.content, span{from, to})
	}
}

func (b *builder) addString(s string) { b.buf = append(b.buf, s...) }

func (b *builder) text() text { return text{s: string(b.buf), content: b.content} }

// concat returns the texts one after the other. If one is HTML, the others
// are made so.
func concat(parts ...text) text {
	var b builder
	html := slices.ContainsFunc(parts, func(p text) bool { return p.html })
	for _, p := range parts {
		if html && !p.html {
			p = p.mapped(escapeHTML)
		}
		b.add(p)
	}
	t := b.text()
	t.html = html
	return t
}

// segments returns t cut where the origin changes.
func (t text) segments() []tokenizer.Segment {
	var out []tokenizer.Segment
	part := func(from, to int, content bool) {
		if from < to {
			out = append(out, tokenizer.Segment{Text: t.s[from:to], Content: content})
		}
	}
	at := 0
	for _, c := range t.content {
		part(at, c.from, false)
		part(c.from, c.to, true)
		at = c.to
	}
	part(at, len(t.s), false)
	return out
}

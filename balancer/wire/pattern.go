package wire

import "bytes"

// EventPattern knows one event and takes others that are the same byte for byte, but
// for the text that they carry and for their token ids: nearly all events of a
// stream are alike, and comparing is cheaper than looking for fields. The zero
// value knows none.
type EventPattern struct {
	event []byte
	text  Span // of the text, between its quotes
	ids   Span // of the ids, between their brackets; not set: there are none
	gone  Span // what is left out of the events that are taken
	whole bool // nothing is left out
	field int  // that the text is in, of those that Learn was given
	took  Span // the text of the event that was taken last
}

// Forget makes it know no event.
func (a *EventPattern) Forget() { a.event = a.event[:0] }

// HasIDs reports whether the event that is known says token ids.
func (a *EventPattern) HasIDs() bool { return a.ids.Set() }

// Text is the text of the event that Take has just taken of b, and the field that it is
// in, by its place among those that Learn was given.
func (a *EventPattern) Text(b []byte) (text []byte, field int) { return a.took.Of(b), a.field }

// Learn keeps an event, if it carries text in one of the fields, which are
// given as `"name":"`, and perhaps token ids behind it. cut says that the ids
// are to be left out of the events that are taken, as CutField does it.
func (a *EventPattern) Learn(event []byte, fields []string, cut bool) {
	a.Forget()
	text, ids := Span{}, Span{}
	for i, f := range fields {
		at := bytes.Index(event, []byte(f))
		if at < 0 {
			continue
		}
		if text.Set() {
			return // of two texts, either may change
		}
		text.From, a.field = at+len(f), i
		n := textEnd(event[text.From:])
		if n <= 0 {
			return
		}
		text.To = text.From + n
	}
	if !text.Set() || bytes.IndexByte(event, '\r') >= 0 {
		return
	}
	gone := Span{}
	if at := bytes.Index(event, []byte(`"token_ids"`)); at >= 0 {
		ids.From = at + len(`"token_ids":[`)
		if at < text.To || !bytes.HasPrefix(event[at:], []byte(`"token_ids":[`)) {
			return
		}
		n := bytes.IndexByte(event[ids.From:], ']')
		if n <= 0 {
			return
		}
		ids.To = ids.From + n
		switch gone = (Span{at, ids.To + 1}); {
		case gone.To == len(event) || event[gone.To] <= ' ':
			return
		case event[gone.To] == ',':
			gone.To++
		case event[at-1] == ',':
			gone.From--
		}
		gone.From = alsoGone(event, gone.From, text.To)
	}
	a.event = append(a.event, event...)
	a.text, a.ids, a.gone, a.whole = text, ids, gone, !cut || !ids.Set()
}

// nulls is what stands before the token ids where an engine says of each event
// that it does not tell the prompt's again. It goes with them.
const nulls = `"prompt_token_ids":null`

// alsoGone returns where the part of an event that is left out begins, when the
// ids and the comma beside them begin at from; no part begins before least.
func alsoGone(event []byte, from, least int) int {
	before := event[least:from]
	switch {
	case bytes.HasSuffix(before, []byte(nulls+",")):
		return from - len(nulls) - 1
	case bytes.HasSuffix(before, []byte(","+nulls)):
		return from - len(nulls) - 1
	}
	return from
}

// Take takes the first event of b if it is alike. It returns its length, 0
// where it is not; dst with what is left of the event behind it; and ids with
// its token ids behind them.
func (a *EventPattern) Take(dst, b []byte, ids []int32) (n int, _ []byte, _ []int32) {
	if len(b) < len(a.event)-a.text.len()-a.ids.len() || len(a.event) == 0 || !bytes.Equal(b[:a.text.From], a.event[:a.text.From]) {
		return 0, dst, ids
	}
	at := textEnd(b[a.text.From:])
	if at <= 0 {
		return 0, dst, ids
	}
	at += a.text.From
	a.took = Span{a.text.From, at}
	if !a.ids.Set() {
		rest := a.event[a.text.To:]
		if n = at + len(rest); n > len(b) || !bytes.Equal(b[at:n], rest) {
			return 0, dst, ids
		}
		return n, append(dst, b[:n]...), ids
	}
	mid, end := a.event[a.text.To:a.ids.From], a.event[a.ids.To:]
	from := at + len(mid)
	if from > len(b) || !bytes.Equal(b[at:from], mid) {
		return 0, dst, ids
	}
	to, all := plainInts(ids, b, from)
	if n = to + len(end); to == 0 || n > len(b) || !bytes.Equal(b[to:n], end) {
		return 0, dst, ids
	}
	if a.whole {
		return n, append(dst, b[:n]...), all
	}
	dst = append(dst, b[:at+a.gone.From-a.text.To]...)
	return n, append(dst, a.event[a.gone.To:]...), all
}

func (s Span) len() int { return s.To - s.From }

// textEnd returns the length of the text at the front of b, which ends at a
// quote; 0 where it is empty or has no end, or a byte that belongs into none.
func textEnd(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i
		case c < ' ':
			return 0
		case c == '\\':
			if i++; i < len(b) && b[i] < ' ' {
				return 0
			}
		}
	}
	return 0
}

// plainInts appends the numbers at b[at:], parted by commas without spaces, and
// returns where the bracket behind them lies, 0 where there is no such list.
func plainInts(dst []int32, b []byte, at int) (int, []int32) {
	was, n, digits := len(dst), 0, 0
	for ; at < len(b); at++ {
		switch c := b[at]; {
		case c >= '0' && c <= '9':
			if digits > 0 && n == 0 {
				return 0, dst[:was] // no number begins with a zero
			}
			if n = n*10 + int(c-'0'); n > 1<<31-1 {
				return 0, dst[:was]
			}
			digits++
		case (c == ',' || c == ']') && digits > 0:
			dst = append(dst, int32(n))
			if n, digits = 0, 0; c == ']' {
				return at, dst
			}
		default:
			return 0, dst[:was]
		}
	}
	return 0, dst[:was]
}

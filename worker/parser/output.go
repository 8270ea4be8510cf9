package parser

import "strings"

// output collects what is new.
type output struct {
	delta Delta
	hold  bool   // white space behind a call is dropped
	tight bool   // and before the first one
	space []byte // white space that may stand before a call
	calls int
	args  []byte // arguments for the last delta
}

// take returns what was collected and begins anew.
func (o *output) take() Delta {
	o.settle()
	d := o.delta
	o.delta = Delta{}
	return d
}

// settle writes the arguments collected into the last delta.
func (o *output) settle() {
	if n := len(o.delta.Calls); n > 0 {
		o.delta.Calls[n-1].Arguments += string(o.args)
	}
	o.args = o.args[:0]
}

func (o *output) content(s string) {
	if !o.hold || !o.tight && o.calls == 0 {
		o.delta.Content += s
		return
	}
	if text := strings.TrimRight(s, " \t\r\n"); text != "" {
		o.delta.Content += string(o.space) + text
		o.space, s = o.space[:0], s[len(text):]
	}
	o.space = append(o.space, s...)
}

// release hands out white space at the end, but behind a call.
func (o *output) release() {
	if o.calls == 0 {
		o.delta.Content += string(o.space)
	}
	o.space = o.space[:0]
}

// begin starts a call.
func (o *output) begin(name string) {
	o.settle()
	o.space = o.space[:0]
	o.delta.Calls = append(o.delta.Calls, CallDelta{Index: o.calls, Name: name})
	o.calls++
}

// arguments adds to the arguments of the last call.
func (o *output) arguments(s string) {
	o.room(len(s))
	o.args = append(o.args, s...)
}

// argument adds one byte.
func (o *output) argument(b byte) {
	o.room(1)
	o.args = append(o.args, b)
}

// room makes sure that there is a delta for n bytes of arguments.
func (o *output) room(n int) {
	if k := len(o.delta.Calls); n > 0 && (k == 0 || o.delta.Calls[k-1].Index != o.calls-1) {
		o.delta.Calls = append(o.delta.Calls, CallDelta{Index: o.calls - 1})
	}
}

// cut finds a marker in a text that grows. It returns what lies before it and
// what lies behind; if it is not there, what certainly is not part of it, and
// the rest, which may be its beginning.
func cut(text, marker string) (before, rest string, found bool) {
	if i := strings.Index(text, marker); i >= 0 {
		return text[:i], text[i+len(marker):], true
	}
	for n := min(len(marker)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, marker[:n]) {
			return text[:len(text)-n], text[len(text)-n:], false
		}
	}
	return text, "", false
}

// begins reports whether text begins with marker, or may do so when it has
// grown.
func begins(text, marker string) (is, maybe bool) {
	if strings.HasPrefix(text, marker) {
		return true, true
	}
	return false, strings.HasPrefix(marker, text)
}

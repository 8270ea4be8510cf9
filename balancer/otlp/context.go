package otlp

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// Context is one span's place in its trace.
type Context struct {
	Trace   [16]byte
	Span    [8]byte
	Sampled bool
}

// Parse reads a traceparent. One that is not well formed begins no trace.
func Parse(traceparent []byte) (c Context, ok bool) {
	// version-trace-span-flags: later versions may append fields.
	if len(traceparent) < 55 || traceparent[2] != '-' || traceparent[35] != '-' || traceparent[52] != '-' {
		return c, false
	}
	version, flags := traceparent[:2], traceparent[53:55]
	if string(version) == "ff" || string(version) == "00" && len(traceparent) != 55 || len(traceparent) > 55 && traceparent[55] != '-' {
		return c, false
	}
	var one [1]byte
	for _, part := range []struct{ to, from []byte }{{one[:], version}, {c.Trace[:], traceparent[3:35]}, {c.Span[:], traceparent[36:52]}, {one[:], flags}} {
		for _, b := range part.from {
			if (b < '0' || b > '9') && (b < 'a' || b > 'f') {
				return Context{}, false
			}
		}
		if _, err := hex.Decode(part.to, part.from); err != nil {
			return Context{}, false
		}
	}
	if c.Trace == [16]byte{} || c.Span == [8]byte{} {
		return Context{}, false
	}
	c.Sampled = one[0]&1 != 0
	return c, true
}

// New begins a trace.
func New() (c Context) {
	for c.Trace == [16]byte{} {
		binary.BigEndian.PutUint64(c.Trace[:8], rand.Uint64())
		binary.BigEndian.PutUint64(c.Trace[8:], rand.Uint64())
	}
	c.Sampled = true
	return c.Child()
}

// Child is a new span of the same trace.
func (c Context) Child() Context {
	for c.Span = [8]byte{}; c.Span == [8]byte{}; {
		binary.BigEndian.PutUint64(c.Span[:], rand.Uint64())
	}
	return c
}

// Append appends the context as a traceparent.
func (c Context) Append(dst []byte) []byte {
	dst = append(dst, "00-"...)
	dst = hex.AppendEncode(dst, c.Trace[:])
	dst = append(dst, '-')
	dst = hex.AppendEncode(dst, c.Span[:])
	if c.Sampled {
		return append(dst, "-01"...)
	}
	return append(dst, "-00"...)
}

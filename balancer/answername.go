package balancer

import (
	"bytes"

	"roundhouse/balancer/wire"
)

// keepsName reports whether the answer is to carry the name that the client
// asked for in place of the target's.
func (x *exchange) keepsName() bool {
	return x.asked.route != nil && x.asked.route.cfg.KeepName && x.asked.peek.Model != "" && x.asked.peek.Model != x.asked.model
}

// named puts the name that the client asked for into a body or an event, where
// it names the target. It returns what it was given where there is nothing to
// do.
func (x *exchange) named(b []byte) []byte {
	if v, ok := wire.Field(b, `"model"`); !ok || !bytes.Equal(v, quote(x.asked.model)) {
		return b
	}
	return setField(b, `"model"`, quote(x.asked.peek.Model))
}

// keepName does so with the event at the end of o.
func (s *stream) keepName(o *outBuf, at int) {
	if s.x.keepsName() {
		ev := append([]byte(nil), s.x.named(o.b[at:])...)
		o.b = append(o.b[:at], ev...)
	}
}

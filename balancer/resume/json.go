package resume

import (
	"bytes"
	"encoding/json"
	"fmt"

	"roundhouse/balancer/wire"
)

// quote is a string as JSON writes it.
func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("BUG: %q cannot be encoded: %v", s, err))
	}
	return b
}

// setField replaces the value of the first field of that name.
func setField(ev []byte, quoted string, value []byte) []byte {
	v, ok := wire.Field(ev, quoted)
	if !ok {
		return ev
	}
	from := cap(ev) - cap(v) // v is a part of ev
	out := append([]byte(nil), ev[:from]...)
	out = append(out, value...)
	return append(out, ev[from+len(v):]...)
}

// Rename puts name in the place of a model's name, where a body or an event has
// it. It returns b itself where there is nothing to do.
func Rename(b []byte, model, name string) []byte {
	if v, ok := wire.Field(b, `"model"`); !ok || !bytes.Equal(v, quote(model)) {
		return b
	}
	return setField(b, `"model"`, quote(name))
}

// mustJSON encodes a value of the door's own.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: an event cannot be encoded: " + err.Error())
	}
	return b
}

package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// object is a JSON object with its keys in order.
type object struct {
	keys []string
	vals map[string]any
}

// Bounds of a schema.
const (
	maxSchema      = 512 << 10
	maxSchemaDepth = 64
)

// decodeSchema reads JSON: objects as *object, numbers as json.Number.
func decodeSchema(data []byte) any {
	if len(data) > maxSchema {
		failf("the schema has %d bytes; at most %d are allowed", len(data), maxSchema)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v := decodeValue(dec, 0)
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		failf("the schema is not one JSON value")
	}
	return v
}

func decodeValue(dec *json.Decoder, depth int) any {
	if depth > maxSchemaDepth {
		failf("the schema is nested deeper than %d levels", maxSchemaDepth)
	}
	next := func() json.Token {
		t, err := dec.Token()
		if err != nil {
			failf("the schema is not JSON: %w", err)
		}
		return t
	}
	switch t := next(); t {
	case json.Delim('['):
		items := []any{}
		for dec.More() {
			items = append(items, decodeValue(dec, depth+1))
		}
		next()
		return items
	case json.Delim('{'):
		o := &object{vals: map[string]any{}}
		for dec.More() {
			key := next().(string)
			if _, twice := o.vals[key]; twice {
				failf("the schema has the key %q twice in one object", key)
			}
			o.keys = append(o.keys, key)
			o.vals[key] = decodeValue(dec, depth+1)
		}
		next()
		return o
	default:
		return t
	}
}

// appendJSON writes a value as compact JSON, as enum and const are compared.
func appendJSON(b []byte, v any, colon, comma string) []byte {
	switch v := v.(type) {
	case *object:
		b = append(b, '{')
		for i, k := range v.keys {
			if i > 0 {
				b = append(b, comma...)
			}
			b = appendJSON(b, k, colon, comma)
			b = append(b, colon...)
			b = appendJSON(b, v.vals[k], colon, comma)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, it := range v {
			if i > 0 {
				b = append(b, comma...)
			}
			b = appendJSON(b, it, colon, comma)
		}
		return append(b, ']')
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		failf("a value of the schema cannot be written: %w", err)
	}
	return append(b, bytes.TrimSpace(out.Bytes())...)
}

package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Literal is a string that belongs to the model rather than to the request,
// such as bos_token: special tokens in it are read. A plain string in the
// variables of Render is content.
type Literal string

// Dict is a JSON object whose keys keep their order, which a template can
// see.
type Dict struct {
	keys   []string
	values map[string]any
}

// NewDict returns an empty Dict.
func NewDict() *Dict { return &Dict{values: map[string]any{}} }

// Set sets a key. A key that is there keeps its place.
func (d *Dict) Set(key string, v any) *Dict {
	if _, ok := d.values[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key] = v
	return d
}

// Get returns the value of a key.
func (d *Dict) Get(key string) (any, bool) {
	v, ok := d.values[key]
	return v, ok
}

// Delete takes a key out.
func (d *Dict) Delete(key string) {
	if i := slices.Index(d.keys, key); i >= 0 {
		d.keys = slices.Delete(d.keys, i, i+1)
		delete(d.values, key)
	}
}

// Keys returns the keys in order. The caller must not change them.
func (d *Dict) Keys() []string { return d.keys }

// maxNesting bounds how deep values from outside may be nested.
const maxNesting = 128

// FromJSON reads a JSON value for Render: objects become *Dict, numbers keep
// being whole or not. Of a key that occurs twice the last value counts, as in
// Python.
func FromJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := decodeJSON(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text follows the JSON value")
	}
	return v, nil
}

func decodeJSON(dec *json.Decoder, depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("JSON is nested deeper than %d levels", maxNesting)
	}
	tok, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("cannot read JSON: %w", err)
	}
	switch tok {
	case json.Delim('['):
		items := []any{}
		for dec.More() {
			v, err := decodeJSON(dec, depth+1)
			if err != nil {
				return nil, err
			}
			items = append(items, v)
		}
		_, err := dec.Token()
		return items, err
	case json.Delim('{'):
		d := NewDict()
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, fmt.Errorf("cannot read JSON: %w", err)
			}
			v, err := decodeJSON(dec, depth+1)
			if err != nil {
				return nil, err
			}
			d.Set(key.(string), v)
		}
		_, err := dec.Token()
		return d, err
	}
	return tok, nil
}

// convert turns a variable into a value.
func convert(v any, depth int) (value, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("a variable is nested deeper than %d levels", maxNesting)
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case bool:
		return v, nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case int64:
		return v, nil
	case float64:
		return v, nil
	case string:
		return untrusted(v), nil
	case Literal:
		return literal(string(v)), nil
	case json.Number:
		return convertNumber(v)
	case json.RawMessage:
		inner, err := FromJSON(v)
		if err != nil {
			return nil, err
		}
		return convert(inner, depth)
	case []any:
		return convertItems(v, depth)
	case []string:
		return convertItems(v, depth)
	case []*Dict:
		return convertItems(v, depth)
	case []map[string]any:
		return convertItems(v, depth)
	case map[string]any:
		return convertMap(v, depth)
	case *Dict:
		d := newDict()
		for _, k := range v.keys {
			x, err := convert(v.values[k], depth+1)
			if err != nil {
				return nil, err
			}
			d.set(untrusted(k), x)
		}
		return d, nil
	}
	return nil, fmt.Errorf("a variable has the Go type %T; use nil, bool, int, float64, string, Literal, slices, maps or *Dict", v)
}

func convertItems[T any](items []T, depth int) (value, error) {
	out := &list{make([]value, len(items))}
	for i, it := range items {
		v, err := convert(it, depth+1)
		if err != nil {
			return nil, err
		}
		out.items[i] = v
	}
	return out, nil
}

func convertMap(m map[string]any, depth int) (value, error) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	d := newDict()
	for _, k := range keys {
		v, err := convert(m[k], depth+1)
		if err != nil {
			return nil, err
		}
		d.set(untrusted(k), v)
	}
	return d, nil
}

func convertNumber(n json.Number) (value, error) {
	s := n.String()
	if !strings.ContainsAny(s, ".eE") {
		i, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the number %s is outside the range of 64 bits", s)
		}
		return i, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s is outside the range of a float64", s)
	}
	return f, nil
}

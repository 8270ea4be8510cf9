package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// decode reads one JSON value into out, a pointer to a struct of the engine's own
// types. A field that the struct has not got is refused, and so is a name that stands
// twice by the engine's rules, of which two readers might take different ones.
func decode(body []byte, out any) error {
	names := json.NewDecoder(bytes.NewReader(body))
	if err := once(names, reflect.TypeOf(out).Elem(), 0); err != nil {
		return err
	}
	if _, err := names.Token(); err != io.EOF {
		return errors.New("something follows the JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		return fmt.Errorf("the body is not what the engine takes: %w", err)
	}
	return nil
}

// maxDepth is more than any of the engine's types is nested.
const maxDepth = 32

// once walks one value and refuses an object with a name twice. t is the type that the
// value is read into; nil: unknown, which a decoder refuses by itself.
func once(d *json.Decoder, t reflect.Type, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("the body is nested more than %d deep", maxDepth)
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	token, err := d.Token()
	if err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	seen := map[string]bool{}
	switch token {
	case json.Delim('{'):
		for d.More() {
			token, err := d.Token()
			if err != nil {
				return fmt.Errorf("the body is not JSON: %w", err)
			}
			name := token.(string) // names are strings, or Token has failed
			folded, inner := fold(name), reflect.Type(nil)
			switch {
			case t != nil && t.Kind() == reflect.Map:
				folded, inner = name, t.Elem()
			case t != nil && t.Kind() == reflect.Struct:
				inner = fieldType(t, folded)
			}
			if seen[folded] {
				return fmt.Errorf("%q is there twice", name)
			}
			seen[folded] = true
			if err := once(d, inner, depth+1); err != nil {
				return err
			}
		}
		_, err = d.Token()
	case json.Delim('['):
		var inner reflect.Type
		if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
			inner = t.Elem()
		}
		for d.More() {
			if err := once(d, inner, depth+1); err != nil {
				return err
			}
		}
		_, err = d.Token()
	}
	if err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	return nil
}

// fieldType is the type of the field that a folded name is read into; nil: none.
func fieldType(t reflect.Type, folded string) reflect.Type {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		if !f.Anonymous && fold(name) == folded {
			return f.Type
		}
	}
	return nil
}

// fold gives all names one spelling that encoding/json takes for the same field: upper
// and lower case, and what Unicode counts as either (ſ is an s, K is a k).
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return unicode.ToUpper(r)
		}
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, name)
}

// set returns the first field below v that is asked for, and nothing where none is:
// empty lists and maps, and pointers to nothing, are what clients send of a field that
// nobody has set. A list of paths to hide is asked for where it is there at all: empty,
// it hides none of those that an engine hides by itself.
func set(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return ""
		}
		return set(v.Elem())
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(v.Type()) {
			if f.Anonymous {
				continue
			}
			field, err := v.FieldByIndexErr(f.Index)
			if err != nil {
				continue // of an embedded pointer to nothing
			}
			inner := set(field)
			if f.Type.Kind() == reflect.Slice && (f.Name == "MaskedPaths" || f.Name == "ReadonlyPaths") && !field.IsNil() {
				return f.Name
			}
			if inner != "" {
				return strings.TrimSuffix(f.Name+"."+inner, ".*")
			}
		}
		return ""
	case reflect.Slice, reflect.Map:
		if v.Len() == 0 {
			return ""
		}
		return "*"
	}
	if v.IsZero() {
		return ""
	}
	return "*"
}

// move takes a field out of what was asked into what goes on; what is left is refused.
func move[T any](to, from *T) {
	var none T
	*to, *from = *from, none
}

package server

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Values are read as pydantic reads them for vLLM: a whole number may be
// written as 5.0, "5" or true, a number as a string, a truth value as one of
// some words. Encoders of languages with one kind of number (Lua, R, PHP) write
// such values without being asked.

// errKind is a value of another kind than the field's.
var errKind = errors.New("another kind of value")

// unmarshaler is a type that reads itself.
var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// assign fills a struct from fields by exact name; at is where it stands in
// the body.
func assign(fields map[string]json.RawMessage, v reflect.Value, at string) *apiError {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			if err := assign(fields, v.Field(i), at); err != nil {
				return err
			}
			continue
		}
		name, rule, _ := strings.Cut(f.Tag.Get("json"), ",")
		raw, ok := fields[name]
		if !ok || name == "" || name == "-" {
			continue
		}
		err := read(raw, v.Field(i), at+"."+name)
		switch {
		case rule == "number" && (err != nil || raw[0] == '"'): // vLLM looks at these before pydantic does
			return badValue(name, "`%s` must be an integer.", name)
		case err != nil && rule == "wide" && immense(raw): // Python's whole numbers have no bounds
			v.Field(i).Set(reflect.ValueOf(new(math.MaxInt)))
		case err != nil:
			return err
		}
	}
	return nil
}

// read fills one field; null leaves it as it is.
func read(raw json.RawMessage, v reflect.Value, at string) *apiError {
	if string(raw) == "null" {
		return nil
	}
	t := v.Type()
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return readItself(raw, v, at)
	}
	var err error
	switch t.Kind() {
	case reflect.Pointer:
		p := reflect.New(t.Elem())
		if err := read(raw, p.Elem(), at); err != nil {
			return err
		}
		v.Set(p)
		return nil
	case reflect.Struct:
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return badShape("dict_type", at, "Input should be a valid dictionary")
		}
		return assign(fields, v, at)
	case reflect.Slice:
		return readList(raw, v, at)
	case reflect.Bool:
		var b bool
		b, err = readBool(raw)
		v.SetBool(b)
	case reflect.Int, reflect.Int32, reflect.Int64:
		var n int64
		if n, err = readInt(raw); err == nil && !v.OverflowInt(n) {
			v.SetInt(n)
		} else if err == nil {
			err = errKind
		}
	case reflect.Float64:
		var x float64
		x, err = readFloat(raw)
		v.SetFloat(x)
	default:
		err = json.Unmarshal(raw, v.Addr().Interface())
	}
	if err != nil {
		kind, name := pydantic(t)
		return badShape(kind, at, "Input should be a valid "+name)
	}
	return nil
}

func readItself(raw json.RawMessage, v reflect.Value, at string) *apiError {
	err := json.Unmarshal(raw, v.Addr().Interface())
	var own *apiError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	}
	kind, name := pydantic(v.Type())
	return badShape(kind, at, "Input should be a valid "+name)
}

func readList(raw json.RawMessage, v reflect.Value, at string) *apiError {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return badShape("list_type", at, "Input should be a valid list")
	}
	list := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		if err := read(item, list.Index(i), at+"."+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	v.Set(list)
	return nil
}

// unquoted is a number's text, which may stand in a string.
func unquoted(raw json.RawMessage) string {
	if text, ok := decoded[string](raw); ok {
		return strings.TrimSpace(text)
	}
	return string(raw)
}

// immense reports whether a value is a whole number beyond int64.
func immense(raw json.RawMessage) bool {
	digits := unquoted(raw)
	return len(digits) >= 19 && len(digits) <= 4300 && strings.Trim(digits, "0123456789") == "" // Python reads no longer ones
}

func readInt(raw json.RawMessage) (int64, error) {
	if b, ok := decoded[bool](raw); ok {
		if b {
			return 1, nil
		}
		return 0, nil
	}
	text := unquoted(raw)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	x, err := number(text)
	if err != nil || x != math.Trunc(x) || math.Abs(x) >= 1<<63 {
		return 0, errKind
	}
	return int64(x), nil
}

func readFloat(raw json.RawMessage) (float64, error) {
	if b, ok := decoded[bool](raw); ok {
		if b {
			return 1, nil
		}
		return 0, nil
	}
	return number(unquoted(raw))
}

// number reads a decimal number, and none of the other forms that Go knows.
func number(text string) (float64, error) {
	if text == "" || strings.ContainsAny(text, "xXpP_") {
		return 0, errKind
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, errKind
	}
	return x, nil
}

func readBool(raw json.RawMessage) (bool, error) {
	if b, ok := decoded[bool](raw); ok {
		return b, nil
	}
	switch strings.ToLower(unquoted(raw)) {
	case "1", "1.0", "t", "true", "y", "yes", "on":
		return true, nil
	case "0", "0.0", "f", "false", "n", "no", "off":
		return false, nil
	}
	return false, errKind
}

// pydantic is what pydantic calls the error of a type, and the type.
func pydantic(t reflect.Type) (kind, name string) {
	switch t.Kind() {
	case reflect.Pointer:
		return pydantic(t.Elem())
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "int_parsing", "integer"
	case reflect.Float64:
		return "float_parsing", "number"
	case reflect.Bool:
		return "bool_parsing", "boolean"
	case reflect.String:
		return "string_type", "string"
	case reflect.Slice:
		return "list_type", "list"
	}
	return "dict_type", "dictionary"
}

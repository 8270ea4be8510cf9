package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds nesting: nothing that the API takes comes near it.
const maxDepth = 64

// readBody reads a JSON body into v, a pointer to a struct whose fields carry
// json tags. Names are matched exactly; unknown ones are ignored, as vLLM does.
func readBody(r *http.Request, limit int64, v any) *apiError {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &apiError{Message: "Unsupported Media Type: Only 'application/json' is allowed", Type: "Bad Request", Code: http.StatusBadRequest}
	}
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, limit))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return tooLarge(limit)
		}
		return badShape("json_invalid", "body", "the body ended before its time")
	}
	if err := checkJSON(body); err != nil {
		return badShape("json_invalid", "body", "JSON decode error: "+err.Error())
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return badShape("model_attributes_type", "body", "Input should be a valid dictionary or object to extract fields from")
	}
	return assign(fields, reflect.ValueOf(v).Elem())
}

func tooLarge(limit int64) *apiError {
	return &apiError{
		Message: fmt.Sprintf("the request body is larger than %d bytes", limit), Type: "Bad Request", Code: http.StatusRequestEntityTooLarge,
	}
}

// assign fills a struct from fields by exact name.
func assign(fields map[string]json.RawMessage, v reflect.Value) *apiError {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			if err := assign(fields, v.Field(i)); err != nil {
				return err
			}
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		raw, ok := fields[name]
		if !ok || name == "" || string(raw) == "null" {
			continue
		}
		if err := json.Unmarshal(raw, v.Field(i).Addr().Interface()); err != nil {
			var own *apiError
			if errors.As(err, &own) {
				return own
			}
			return badShape(kindOf(v.Field(i).Type()), name, "Input should be a valid "+nameOf(v.Field(i).Type()))
		}
	}
	return nil
}

func kindOf(t reflect.Type) string {
	switch nameOf(t) {
	case "integer":
		return "int_parsing"
	case "number":
		return "float_parsing"
	case "boolean":
		return "bool_parsing"
	case "string":
		return "string_type"
	case "list":
		return "list_type"
	}
	return "dict_type"
}

// nameOf is what pydantic calls a type.
func nameOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return nameOf(t.Elem())
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Slice:
		return "list"
	default:
		return "dictionary"
	}
}

// checkJSON refuses what encoding/json would let pass or silently change:
// nesting beyond maxDepth, a key twice in one object, text that is not UTF-8,
// a surrogate without its other half, and a second document.
func checkJSON(body []byte) error {
	if !utf8.Valid(body) {
		return errors.New("the body is not UTF-8")
	}
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return errors.New("the body begins with a byte order mark")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := checkValue(d, 0); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is more after the value")
	}
	if bytes.Contains(body, []byte(`\u`)) {
		return checkSurrogates(body)
	}
	return nil
}

func checkValue(d *json.Decoder, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("values are nested deeper than %d", maxDepth)
	}
	tok, err := d.Token()
	if err != nil {
		return errors.New("not valid JSON")
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	var keys map[string]struct{}
	if delim == '{' {
		keys = map[string]struct{}{}
	}
	for d.More() {
		if keys != nil {
			key, err := d.Token()
			if err != nil {
				return errors.New("not valid JSON")
			}
			name := key.(string)
			if _, twice := keys[name]; twice {
				return fmt.Errorf("the key %.64q stands twice in one object", name)
			}
			keys[name] = struct{}{}
		}
		if err := checkValue(d, depth+1); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return errors.New("not valid JSON")
	}
	return nil
}

// checkSurrogates looks for an escaped half of a surrogate pair on its own,
// which Go would turn into U+FFFD.
func checkSurrogates(body []byte) error {
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		u, ok := escape(body[i:])
		if !ok {
			i++ // another escape: its second byte is not a beginning
			continue
		}
		i += 5
		if u < 0xD800 || u > 0xDFFF {
			continue
		}
		low, ok := escape(body[min(i+1, len(body)):])
		if u > 0xDBFF || !ok || low < 0xDC00 || low > 0xDFFF {
			return errors.New("half of a surrogate pair stands alone")
		}
		i += 6
	}
	return nil
}

// escape reads \uXXXX at the beginning of b.
func escape(b []byte) (u uint16, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return uint16(v), err == nil
}

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
	"unicode/utf8"
)

// maxDepth bounds nesting: nothing that the API takes comes near it.
const maxDepth = 64

// readBody reads a JSON body into v, a pointer to a struct whose fields carry
// json tags. Names are matched exactly; unknown ones are ignored, as vLLM does.
func readBody(r *http.Request, limit int64, v any) *apiError {
	body, err := bodyOf(r, limit)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return badShape("model_attributes_type", "body", "Input should be a valid dictionary or object to extract fields from")
	}
	return assign(fields, reflect.ValueOf(v).Elem(), "body")
}

// withBody is a request for another path with a body that was read already.
func withBody(r *http.Request, path string, body []byte) *http.Request {
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.Body, inner.ContentLength = path, io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return inner
}

// bodyOf reads a body of JSON.
func bodyOf(r *http.Request, limit int64) ([]byte, *apiError) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &apiError{Message: "Unsupported Media Type: Only 'application/json' is allowed", Type: "Bad Request", Code: http.StatusBadRequest}
	}
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, limit))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return nil, tooLarge(limit)
		}
		return nil, badShape("json_invalid", "body", "the body ended before its time")
	}
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, badShape("missing", "body", "Field required")
	}
	if err := checkJSON(body); err != nil {
		return nil, badShape("json_invalid", "body", "JSON decode error: "+err.Error())
	}
	return body, nil
}

func tooLarge(limit int64) *apiError {
	return &apiError{
		Message: fmt.Sprintf("the request body is larger than %d bytes", limit), Type: "Bad Request", Code: http.StatusRequestEntityTooLarge,
	}
}

// checkJSON refuses what encoding/json would let pass or silently change:
// nesting beyond maxDepth, text that is not UTF-8, a surrogate without its
// other half, and a second document. Of a key that stands twice the last value
// holds, as everywhere.
func checkJSON(body []byte) error {
	if !utf8.Valid(body) {
		return errors.New("the body is not UTF-8")
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
	for d.More() {
		if delim == '{' {
			if _, err := d.Token(); err != nil {
				return errors.New("not valid JSON")
			}
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

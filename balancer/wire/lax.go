package wire

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Engines that validate by pydantic take 4.0, "4" and true for whole numbers, and 1 and
// "yes" for true. The door reads them alike: a client that an engine serves is not to
// fail at the door.

// boolean reads true or false; null is false.
func boolean(v []byte, at Span, name string) (bool, error) {
	switch string(v) {
	case "true":
		return true, nil
	case "false", "null":
		return false, nil
	}
	word := unquoted(v)
	if IsTrue(word) {
		return true, nil
	}
	switch strings.ToLower(word) {
	case "0", "f", "false", "n", "no", "off":
		return false, nil
	}
	if n, err := strconv.ParseFloat(string(v), 64); err == nil && (n == 0 || n == 1) {
		return n == 1, nil
	}
	return false, &BodyError{At: at.From, Param: name, What: fmt.Sprintf("the field %q must be true or false", name)}
}

// IsTrue reports whether a word of a form, a query or a body says yes, as engines read it.
// The engine itself is the judge of words that say neither.
func IsTrue(word string) bool {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "true", "1", "yes", "y", "on", "t":
		return true
	}
	return false
}

// yes reports whether a field that the engine judges is true.
func yes(v []byte) bool {
	is, err := boolean(v, Span{}, "")
	return err == nil && is
}

// unquoted is a string's text, or anything else as it stands.
func unquoted(v []byte) string {
	var s string
	if v[0] == '"' && json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// mostInteger is the largest whole number of 15 digits: such a one a float holds as well.
const mostInteger = 1e15 - 1

// integer reads a whole number of at most 15 digits; null is 0.
func integer(v []byte, at Span, name string) (int64, error) {
	switch string(v) {
	case "null", "false":
		return 0, nil
	case "true":
		return 1, nil
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && n >= -mostInteger && n <= mostInteger {
		return n, nil
	}
	text := strings.TrimSpace(unquoted(v))
	if n, err := strconv.ParseFloat(text, 64); err == nil && n == math.Trunc(n) && math.Abs(n) <= mostInteger && !strings.ContainsAny(text, "xXpP_") {
		return int64(n), nil
	}
	return 0, &BodyError{At: at.From, Param: name, What: fmt.Sprintf("the field %q must be a whole number", name)}
}

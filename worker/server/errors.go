package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"roundhouse/kernels"
)

// apiError is an answer that is not one, in vLLM's shape.
type apiError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   any    `json:"param"`
	Code    int    `json:"code"`
}

func (e *apiError) Error() string { return e.Message }

// badValue is a field whose value makes no sense.
func badValue(param, format string, args ...any) *apiError {
	e := &apiError{Message: fmt.Sprintf(format, args...), Type: "BadRequestError", Code: http.StatusBadRequest}
	if param != "" {
		e.Param = param
	}
	return e
}

// badShape is a value of another shape than the field's, as pydantic says it;
// at is where it stands, from body on.
func badShape(kind, at, message string) *apiError {
	return &apiError{
		Message: fmt.Sprintf("1 validation error:\n  {'type': '%s', 'loc': '%s', 'msg': '%s'}", kind, at, message),
		Type:    "Bad Request", Param: at, Code: http.StatusBadRequest,
	}
}

// oneOf refuses a text that is not among those known; nil is none.
func oneOf(v *string, at string, known ...string) *apiError {
	if v == nil || slices.Contains(known, *v) {
		return nil
	}
	return badShape("literal_error", at, "Input should be '"+strings.Join(known, "', '")+"'")
}

// printable is a client's text as an error may repeat it: cut, and without what
// would not be one line.
func printable(text string, most int) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))
	if len(clean) > most {
		clean = strings.ToValidUTF8(clean[:most], "")
	}
	return clean
}

func notFound(param, format string, args ...any) *apiError {
	e := &apiError{Message: fmt.Sprintf(format, args...), Type: "NotFoundError", Code: http.StatusNotFound}
	if param != "" {
		e.Param = param
	}
	return e
}

func unavailable(message string) *apiError {
	return &apiError{Message: message, Type: "ServiceUnavailableError", Code: http.StatusServiceUnavailable}
}

func internal(message string) *apiError {
	return &apiError{Message: message, Type: "InternalServerError", Code: http.StatusInternalServerError}
}

// stepFailed is the error of a request whose step the backend could not compute,
// which the log is told too.
func (s *Server) stepFailed(failed *kernels.StepError) *apiError {
	s.cfg.Log.Error("a step failed, and its requests with it", "error", failed.Err, "stack", string(failed.Stack))
	return internal("the engine could not compute this request: " + failed.Error())
}

// writeError answers with e.
func writeError(w http.ResponseWriter, e *apiError) {
	writeJSON(w, e.Code, map[string]*apiError{"error": e})
}

// writeJSON answers with v as JSON.
func writeJSON(w http.ResponseWriter, code int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("BUG: an answer cannot be written as JSON: %v", err))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(data) // a client that has left is seen by its context
}

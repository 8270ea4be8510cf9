package surface

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Failure is what a client is told when a request cannot be served, in
// OpenAI's shape.
type Failure struct {
	Status     int
	Type       string // invalid_request_error, authentication_error, rate_limit_error, api_error …
	Code       string
	param      string
	Message    string
	Reason     string // of roundhouse_refused_total; "" where it is no refusal
	RetryAfter int    // seconds; 0: not said
	Allow      string // the methods that the path takes, of a 405
}

// Error implements error.
func (f *Failure) Error() string { return fmt.Sprintf("%d %s: %s", f.Status, f.Code, f.Message) }

// JSON is the JSON of the failure as clients of a path expect it.
func (f *Failure) JSON(path string) []byte {
	if path == MessagesPath || path == MessagesPath+"/count_tokens" {
		return f.anthropic()
	}
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	in := inner{Message: f.Message, Type: f.Type}
	if f.param != "" {
		in.Param = &f.param
	}
	if f.Code != "" {
		in.Code = &f.Code
	}
	b, err := json.Marshal(struct {
		Error inner `json:"error"`
	}{in})
	return mustEncode(b, err)
}

// anthropic is the failure in Anthropic's shape.
func (f *Failure) anthropic() []byte {
	type inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	typ, ok := anthropicTypes[f.Status]
	if !ok {
		typ = "api_error"
	}
	b, err := json.Marshal(struct {
		Type  string `json:"type"`
		Error inner  `json:"error"`
	}{"error", inner{typ, f.Message}})
	return mustEncode(b, err)
}

// anthropicTypes are Anthropic's names for errors, by status.
var anthropicTypes = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error", 405: "invalid_request_error",
	413: "request_too_large", 415: "invalid_request_error", 429: "rate_limit_error", 503: "overloaded_error", 504: "timeout_error",
}

// Event is the failure as the last event of a stream on a path.
func (f *Failure) Event(path string) []byte {
	switch {
	case path == MessagesPath:
		return fmt.Appendf(nil, "event: error\ndata: %s\n\n", f.anthropic())
	case strings.HasPrefix(path, ResponsesPath):
		b, err := json.Marshal(struct {
			Type    string  `json:"type"`
			Code    string  `json:"code"`
			Message string  `json:"message"`
			Param   *string `json:"param"`
		}{"error", f.Code, f.Message, nil})
		return fmt.Appendf(nil, "event: error\ndata: %s\n\n", mustEncode(b, err))
	}
	return fmt.Appendf(nil, "data: %s\n\n", f.JSON(path))
}

// mustEncode is the JSON of an error, which always has one.
func mustEncode(b []byte, err error) []byte {
	if err != nil {
		panic("BUG: an error's strings cannot be encoded: " + err.Error())
	}
	return b
}

// BadRequest refuses what the client sent; param names the field.
func BadRequest(param, format string, args ...any) *Failure {
	return &Failure{Status: 400, Type: "invalid_request_error", Code: "invalid_request", param: param,
		Message: fmt.Sprintf(format, args...), Reason: "bad_request"}
}

// NotFound refuses what is not there.
func NotFound(format string, args ...any) *Failure {
	return &Failure{Status: 404, Type: "invalid_request_error", Code: "not_found", Message: fmt.Sprintf(format, args...)}
}

// UnknownModel refuses a model that is not served, or not to this key.
func UnknownModel(name string) *Failure {
	return &Failure{Status: 404, Type: "invalid_request_error", Code: "model_not_found", param: "model", Reason: "bad_request",
		Message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", name)}
}

// NotSaid refuses a model that a pool may well serve: none of its workers has
// answered yet, and the configuration names no model. Clients do not try again
// after a 404.
func NotSaid(pool string) *Failure {
	return &Failure{Status: 503, Type: "service_unavailable", Code: "no_worker", Reason: "no_worker", RetryAfter: 2,
		Message: fmt.Sprintf("it is not known yet which models pool %q serves: none of its workers has answered", pool)}
}

// NoWorker refuses a request while a pool has no worker for it.
func NoWorker(pool string) *Failure {
	return &Failure{Status: 503, Type: "service_unavailable", Code: "no_worker", Reason: "no_worker", RetryAfter: 2,
		Message: fmt.Sprintf("no worker of pool %q can take the request now", pool)}
}

// WorkerFailed gives up a request that failed at its workers.
func WorkerFailed(pool string) *Failure {
	return &Failure{Status: 502, Type: "api_error", Code: "worker_failed",
		Message: fmt.Sprintf("the workers of pool %q that were asked failed", pool)}
}

package balancer

import (
	"encoding/json"
	"fmt"
	"strings"
)

// failure is what a client is told when a request cannot be served, in
// OpenAI's shape.
type failure struct {
	status     int
	typ        string // invalid_request_error, authentication_error, rate_limit_error, api_error …
	code       string
	param      string
	message    string
	reason     string // of roundhouse_refused_total; "" where it is no refusal
	retryAfter int    // seconds; 0: not said
}

// Error implements error.
func (f *failure) Error() string { return fmt.Sprintf("%d %s: %s", f.status, f.code, f.message) }

// body is the JSON of the failure as clients of a path expect it.
func (f *failure) body(path string) []byte {
	if path == messagesPath || path == messagesPath+"/count_tokens" {
		return f.anthropic()
	}
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	in := inner{Message: f.message, Type: f.typ}
	if f.param != "" {
		in.Param = &f.param
	}
	if f.code != "" {
		in.Code = &f.code
	}
	b, err := json.Marshal(struct {
		Error inner `json:"error"`
	}{in})
	return mustEncode(b, err)
}

// anthropic is the failure in Anthropic's shape.
func (f *failure) anthropic() []byte {
	type inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	typ, ok := anthropicTypes[f.status]
	if !ok {
		typ = "api_error"
	}
	b, err := json.Marshal(struct {
		Type  string `json:"type"`
		Error inner  `json:"error"`
	}{"error", inner{typ, f.message}})
	return mustEncode(b, err)
}

// anthropicTypes are Anthropic's names for errors, by status.
var anthropicTypes = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error", 405: "invalid_request_error",
	413: "request_too_large", 415: "invalid_request_error", 429: "rate_limit_error", 503: "overloaded_error", 504: "timeout_error",
}

// event is the failure as the last event of a stream on a path.
func (f *failure) event(path string) []byte {
	switch {
	case path == messagesPath:
		return fmt.Appendf(nil, "event: error\ndata: %s\n\n", f.anthropic())
	case strings.HasPrefix(path, responsesPath):
		b, err := json.Marshal(struct {
			Type    string  `json:"type"`
			Code    string  `json:"code"`
			Message string  `json:"message"`
			Param   *string `json:"param"`
		}{"error", f.code, f.message, nil})
		return fmt.Appendf(nil, "event: error\ndata: %s\n\n", mustEncode(b, err))
	}
	return fmt.Appendf(nil, "data: %s\n\n", f.body(path))
}

// mustEncode is the JSON of an error, which always has one.
func mustEncode(b []byte, err error) []byte {
	if err != nil {
		panic("BUG: an error's strings cannot be encoded: " + err.Error())
	}
	return b
}

func badRequest(param, format string, args ...any) *failure {
	return &failure{status: 400, typ: "invalid_request_error", code: "invalid_request", param: param,
		message: fmt.Sprintf(format, args...), reason: "bad_request"}
}

func notFound(format string, args ...any) *failure {
	return &failure{status: 404, typ: "invalid_request_error", code: "not_found", message: fmt.Sprintf(format, args...)}
}

func unknownModel(name string) *failure {
	return &failure{status: 404, typ: "invalid_request_error", code: "model_not_found", param: "model", reason: "bad_request",
		message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", name)}
}

// notSaid refuses a model that a pool may well serve: none of its workers has
// answered yet, and the configuration names no model. Clients do not try again
// after a 404.
func notSaid(pool string) *failure {
	return &failure{status: 503, typ: "service_unavailable", code: "no_worker", reason: "no_worker", retryAfter: 2,
		message: fmt.Sprintf("it is not known yet which models pool %q serves: none of its workers has answered", pool)}
}

func noWorker(pool string) *failure {
	return &failure{status: 503, typ: "service_unavailable", code: "no_worker", reason: "no_worker", retryAfter: 2,
		message: fmt.Sprintf("no worker of pool %q can take the request now", pool)}
}

func workerFailed(pool string) *failure {
	return &failure{status: 502, typ: "api_error", code: "worker_failed",
		message: fmt.Sprintf("the workers of pool %q that were asked failed", pool)}
}

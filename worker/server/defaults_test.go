package server_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"roundhouse/worker"
	"roundhouse/worker/server"
	"roundhouse/worker/tokenizer"
)

// TestTemplateDefaults has what the template is given besides the messages:
// the server's defaults below the request's, and tools only where they may be
// called.
func TestTemplateDefaults(t *testing.T) {
	var seen map[string]any
	r := newRig(t, func(s *server.Config, _ *worker.Config) {
		render := s.Template
		s.Template = func(vars map[string]any) ([]tokenizer.Segment, error) {
			seen = vars
			return render(vars)
		}
		s.HideTools = true
		s.TemplateDefaults = map[string]json.RawMessage{"enable_thinking": json.RawMessage("false"), "depth": json.RawMessage("3")}
	})
	f := func(extra object, thinking any, tools bool) {
		t.Helper()
		body := object{"messages": []object{{"role": "user", "content": "hi"}}, "max_tokens": 1}
		for k, v := range extra {
			body[k] = v
		}
		r.ask("/v1/chat/completions", body)
		if seen["enable_thinking"] != thinking || fmt.Sprint(seen["depth"]) != "3" || (seen["tools"] != nil) != tools {
			t.Errorf("%v: the template got thinking %v, depth %v, tools %v", extra, seen["enable_thinking"], seen["depth"], seen["tools"])
		}
	}
	f(nil, false, false)
	f(object{"chat_template_kwargs": object{"enable_thinking": true}}, true, false)
	f(object{"tools": twoTools, "tool_choice": "none"}, false, false)
}

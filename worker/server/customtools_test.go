package server_test

import (
	"testing"
)

// TestCustomTools holds that a custom tool's call carries a text, as it comes
// and as a whole, that a function of a namespace is called by its own name, and
// that tools of other servers are left out.
func TestCustomTools(t *testing.T) {
	var d dictated
	r := parserRig(t, &d, "hermes", "")
	tools := []object{
		{"type": "custom", "name": "patch", "description": "Applies a patch."}, {"type": "web_search"},
		{"type": "namespace", "name": "files", "tools": []object{{"type": "function", "name": "list", "parameters": object{"type": "object"}}}},
	}
	chat := []object{
		{"type": "function", "function": object{"name": "patch", "description": "Applies a patch.", "parameters": object{
			"type": "object", "properties": object{"input": object{"type": "string"}}, "required": []string{"input"}, "additionalProperties": false,
		}}},
		{"type": "function", "function": object{"name": "files__list", "parameters": object{"type": "object"}}},
	}
	r.dictate(&d, object{"messages": []object{{"role": "user", "content": "hi"}}, "tools": chat},
		"<tool_call>\n{\"name\": \"patch\", \"arguments\": {\"input\": \"+ \\\"a\\\"\\n\\u00e9\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"files__list\", \"arguments\": {}}\n</tool_call>")
	body := object{"input": "hi", "tools": tools, "temperature": 0, "max_output_tokens": len(d.tokens) + 5}
	const want = "+ \"a\"\né"
	check := func(items []any) {
		t.Helper()
		if len(items) != 2 {
			t.Fatalf("items %v", items)
		}
		patch, list := items[0].(object), items[1].(object)
		if patch["type"] != "custom_tool_call" || patch["name"] != "patch" || patch["input"] != want {
			t.Errorf("got %v", patch)
		}
		if list["type"] != "function_call" || list["name"] != "list" || list["namespace"] != "files" || list["arguments"] != "{}" {
			t.Errorf("got %v", list)
		}
	}
	check(r.ask("/v1/responses", body)["output"].([]any))
	_, events := r.named("/v1/responses", body)
	text := ""
	for _, e := range events {
		if e["type"] == "response.custom_tool_call_input.delta" {
			text += e["delta"].(string)
		}
	}
	if text != want {
		t.Errorf("in pieces: %q", text)
	}
	check(events[len(events)-1]["response"].(object)["output"].([]any))
	r.refused("/v1/responses", `{"input":"x","tools":[{"type":"custom","name":"p"}],"tool_choice":{"type":"function","name":"q"}}`, 400, bad, "tool_choice", "not found")
}

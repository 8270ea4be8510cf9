package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"roundhouse/worker/server"
)

const twoCalls = "Sure.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Köln\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"clock\", \"arguments\": {}}\n</tool_call>"

var (
	hi = []object{{"role": "user", "content": "hi"}}
	// The same two tools as each API writes them.
	flatTools = []object{
		{"type": "function", "name": "weather", "strict": true, "parameters": object{"type": "object", "properties": object{"city": object{"type": "string"}}}},
		{"type": "function", "name": "clock"},
	}
	schemaTools = []object{
		{"name": "weather", "description": "of a city", "input_schema": object{"type": "object", "properties": object{"city": object{"type": "string"}}}},
		{"type": "custom", "name": "clock", "input_schema": object{"type": "object"}},
	}
)

// text is v as JSON, to compare.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// without drops fields that differ from answer to answer.
func without(v any, names ...string) any {
	o, ok := v.(object)
	if !ok {
		return v
	}
	o = with(o)
	for _, n := range names {
		delete(o, n)
	}
	return o
}

func TestResponsesTools(t *testing.T) {
	var d dictated
	r := parserRig(t, &d, "hermes", "qwen3")
	r.dictate(&d, object{"messages": hi}, "<think>\nhm\n</think>"+twoCalls)
	body := object{"input": hi, "tools": flatTools, "temperature": 0}
	a := r.ask("/v1/responses", body)
	want := []string{
		`{"content":[{"text":"\nhm\n","type":"reasoning_text"}],"encrypted_content":null,"status":"completed","summary":[],"type":"reasoning"}`,
		`{"content":[{"annotations":[],"logprobs":[],"text":"Sure.\n","type":"output_text"}],"phase":null,"role":"assistant","status":"completed","type":"message"}`,
		`{"arguments":"{\"city\": \"Köln\"}","name":"weather","status":"completed","type":"function_call"}`,
		`{"arguments":"{}","name":"clock","status":"completed","type":"function_call"}`,
	}
	items := a["output"].([]any)
	if len(items) != len(want) || a["status"] != "completed" || text(a["tools"]) != text(flatTools) {
		t.Fatalf("got %s", text(a))
	}
	seen := map[any]bool{}
	for i, item := range items {
		if got := text(without(item, "id", "call_id")); got != want[i] {
			t.Errorf("item %d: got %s; want %s", i, got, want[i])
		}
		for _, id := range []any{item.(object)["id"], item.(object)["call_id"]} {
			if id != nil && seen[id] {
				t.Errorf("item %d: the id %v stands twice", i, id)
			}
			seen[id] = true
		}
	}
	names, events := r.named("/v1/responses", body)
	item := func(piece string) string {
		return "response.output_item.added response.content_part.added " + piece + ".delta " + piece + ".done response.content_part.done response.output_item.done "
	}
	const call = "response.output_item.added response.function_call_arguments.delta response.function_call_arguments.done response.output_item.done "
	order := "response.created response.in_progress " + item("response.reasoning_text") + item("response.output_text") + call + call + "response.completed"
	if squeeze(names) != order {
		t.Fatalf("events\n%s\nwant\n%s", squeeze(names), order)
	}
	r.checkItems(t, events, want)
	for i, e := range events {
		if e["sequence_number"].(float64) != float64(i) {
			t.Fatalf("event %d has number %v", i, e["sequence_number"])
		}
	}
}

// checkItems holds that the deltas of a stream add up to its items, and these
// to those of its last event.
func (r *rig) checkItems(t *testing.T, events []object, want []string) {
	t.Helper()
	sums, id := map[float64]string{}, map[float64]any{}
	last := events[len(events)-1]["response"].(object)["output"].([]any)
	for _, e := range events {
		at, _ := e["output_index"].(float64)
		switch e["type"] {
		case "response.output_item.added":
			id[at] = e["item"].(object)["id"]
		case "response.output_item.done":
			if got := text(without(e["item"], "id", "call_id")); got != want[int(at)] || text(e["item"]) != text(last[int(at)]) || !strings.Contains(got, strings.Trim(text(sums[at]), `"`)) {
				t.Errorf("item %v: got %s, its deltas %q; want %s", at, text(e["item"]), sums[at], want[int(at)])
			}
		}
		if delta, ok := e["delta"].(string); ok {
			sums[at] += delta
			if e["item_id"] != id[at] {
				t.Errorf("event %s is of item %v; want %v", text(e), e["item_id"], id[at])
			}
		}
	}
}

func TestMessagesTools(t *testing.T) {
	var d dictated
	r := parserRig(t, &d, "hermes", "qwen3")
	r.dictate(&d, object{"messages": hi}, "<think>\nhm\n</think>"+twoCalls)
	body := object{"messages": hi, "tools": schemaTools, "max_tokens": 200, "temperature": 0}
	a := r.ask("/v1/messages", body)
	want := []string{
		`{"thinking":"\nhm\n","type":"thinking"}`, `{"text":"Sure.\n","type":"text"}`,
		`{"input":{"city":"Köln"},"name":"weather","type":"tool_use"}`, `{"input":{},"name":"clock","type":"tool_use"}`,
	}
	blocks := a["content"].([]any)
	if len(blocks) != len(want) || a["stop_reason"] != "tool_use" {
		t.Fatalf("got %s", text(a))
	}
	for i, b := range blocks {
		if got := text(without(without(b, "id"), "signature")); got != want[i] {
			t.Errorf("block %d: got %s; want %s", i, got, want[i])
		}
	}
	names, events := r.named("/v1/messages", body)
	const block = "content_block_start content_block_delta content_block_stop "
	if got, want := squeeze(names), "message_start "+strings.Repeat(block, 4)+"message_delta message_stop"; got != want {
		t.Fatalf("events %s; want %s", got, want)
	}
	sums := map[string]string{}
	for _, e := range events {
		d, _ := e["delta"].(object)
		for _, k := range []string{"thinking", "text", "partial_json"} {
			if more, ok := d[k].(string); ok {
				if d["type"] != map[string]string{"thinking": "thinking_delta", "text": "text_delta", "partial_json": "input_json_delta"}[k] {
					t.Errorf("delta %v", d)
				}
				sums[fmt.Sprint(e["index"])] += more
			}
		}
	}
	if got := text(sums); got != `{"0":"\nhm\n","1":"Sure.\n","2":"{\"city\": \"Köln\"}","3":"{}"}` {
		t.Errorf("deltas %s", got)
	}
	if _, text := r.get("/metrics"); !strings.Contains(text, `vllm:tool_call_parser_invocations_total{model_name="m",mode="streaming",outcome="tool_call",request_type="other"} 1.0`) {
		t.Error("the call is not counted")
	}
	if stop := events[len(events)-2]["delta"].(object)["stop_reason"]; stop != "tool_use" {
		t.Errorf("the stream stops with %v", stop)
	}
}

// TestToolTurns holds that calls and what they brought make the same prompt by
// each of the APIs.
func TestToolTurns(t *testing.T) {
	var form server.Form
	answer := `[{"name": "clock", "parameters": {}}]`
	r := scriptedRig(t, &answer, &form)
	fn := object{"name": "weather", "arguments": `{"city":"Köln"}`}
	chat := object{"tools": twoTools, "tool_choice": "required", "messages": []object{
		{"role": "system", "content": "Be terse."}, {"role": "user", "content": "hi"},
		{"role": "assistant", "content": "Sure.", "tool_calls": []object{{"id": "c1", "type": "function", "function": fn}}},
		{"role": "tool", "tool_call_id": "c1", "content": "12 °C"}, {"role": "user", "content": "And now?"},
	}}
	want := r.ask(chats, chat)["usage"].(object)["prompt_tokens"]
	responses := object{"tools": flatTools, "tool_choice": "required", "instructions": "Be terse.", "input": []object{
		{"role": "user", "content": "hi"}, {"type": "reasoning", "summary": []any{}},
		{"type": "message", "role": "assistant", "content": []object{{"type": "output_text", "text": "Sure."}}},
		{"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": `{"city":"Köln"}`},
		{"type": "function_call_output", "call_id": "c1", "output": "12 °C"}, {"role": "user", "content": "And now?"},
	}}
	a := r.ask("/v1/responses", responses)
	if got := a["usage"].(object)["input_tokens"]; got != want || a["output"].([]any)[0].(object)["name"] != "clock" {
		t.Errorf("responses: %v input tokens; want %v; %s", got, want, text(a))
	}
	messages := object{"tools": schemaTools, "tool_choice": object{"type": "any", "disable_parallel_tool_use": true}, "system": "Be terse.", "max_tokens": 99, "messages": []object{
		{"role": "user", "content": "hi"},
		{"role": "assistant", "content": []object{{"type": "text", "text": "Sure."}, {"type": "tool_use", "id": "c1", "name": "weather", "input": object{"city": "Köln"}}}},
		{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": "c1", "content": []object{{"type": "text", "text": "12 °C"}}}, {"type": "text", "text": "And now?"}}},
	}}
	a = r.ask("/v1/messages", messages)
	if got := a["usage"].(object)["input_tokens"]; got != want || a["stop_reason"] != "tool_use" || !form.OneCall {
		t.Errorf("messages: %v input tokens; want %v; %s", got, want, text(a))
	}
	answer = `{"city": "x"}`
	named := with(messages, "tool_choice", object{"type": "tool", "name": "weather"})
	if a = r.ask("/v1/messages", named); text(a["content"].([]any)[0].(object)["input"]) != `{"city":"x"}` || a["stop_reason"] != "tool_use" {
		t.Errorf("a named tool: %s", text(a))
	}
	named = with(responses, "tool_choice", object{"type": "function", "name": "weather"})
	if a = r.ask("/v1/responses", named); a["output"].([]any)[0].(object)["arguments"] != answer {
		t.Errorf("a named function: %s", text(a))
	}
}

// TestRefusedFlavours holds that what the two APIs have and this engine has not
// is answered, and says what.
func TestRefusedFlavours(t *testing.T) {
	r := newRig(t, nil)
	f := func(path, fields string, code int, want string) {
		t.Helper()
		body := `{"input":"x"` + fields + `}`
		if path == "/v1/messages" {
			body = `{"messages":[{"role":"user","content":"x"}],"max_tokens":4` + fields + `}`
		}
		got, data := r.post(path, body)
		if got != code || !strings.Contains(string(data), want) {
			t.Errorf("%s %s: %d %s; want %d %q", path, fields, got, data, code, want)
		}
	}
	const responses, messages = "/v1/responses", "/v1/messages"
	f(responses, `,"previous_response_id":"resp_1"`, 404, "Response with id 'resp_1' not found.")
	f(responses, `,"background":true,"store":false`, 400, "`store` is true")
	f(responses, `,"include":["everything"]`, 400, "message.output_text.logprobs")
	f(responses, `,"tools":[{"name":"f"}]`, 400, "discriminator 'type'")
	f(responses, `,"tool_choice":"required"`, 400, "must be specified with 'tools'")
	f(responses, `,"tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"g"}`, 400, "not found in 'tools'")
	f(responses, `,"input":[{"type":"item_reference","id":"x"}]`, 400, "Unsupported input item type: item_reference")
	f(responses, `,"store":false`, 200, `"store":false`)
	f(responses, `,"prompt":{"id":"x"}`, 400, "prompt template is not supported")
	f(responses, `,"tools":[{"type":"function","name":"f"}]`, 200, `"object":"response"`)
	f(responses, `,"tools":[],"tool_choice":"auto"`, 200, `"object":"response"`)
	f(messages, `,"thinking":{"type":"enabled","budget_tokens":1024}`, 400, "must be less than max_tokens")
	f(messages, `,"thinking":{"type":"enabled","budget_tokens":1023}`, 400, "greater than or equal to 1024")
	f(messages, `,"thinking":{"type":"sometimes"}`, 400, "'enabled', 'disabled', 'adaptive'")
	f(messages, `,"output_config":{"effort":"some"}`, 400, "output_config.effort")
	f(messages, `,"thinking":{"type":"disabled"}`, 200, `"type":"message"`)
	f(messages, `,"tools":[{"name":"f"}]`, 400, "input_schema")
	f(messages, `,"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"maybe"}`, 400, "'auto', 'any', 'tool', 'none'")
	f(messages, `,"tool_choice":{"type":"any"}`, 200, `"type":"message"`)
	f(messages, `,"system":7`, 400, "body.system")
	f(messages, `,"messages":[]`, 400, "at least one message")
	for _, message := range []string{
		`{"role":"user","content":[{"type":"image","source":{}}]}`, `{"role":"tool","content":"x"}`, `{"role":"user"}`,
	} {
		if code, data := r.post(messages, `{"max_tokens":4,"messages":[`+message+`]}`); code != 400 || !strings.Contains(string(data), "invalid_request_error") {
			t.Errorf("%s: %d %s", message, code, data)
		}
	}
}

package campaign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// raw is a number as it is to stand in the JSON.
func raw(text string) json.RawMessage { return json.RawMessage(text) }

// numbers are those at which float32, float64 and integers have their edges.
var numbers = []json.RawMessage{
	raw("0"), raw("-0.0"), raw("1"), raw("-1"), raw("2"), raw("0.5"), raw("1.0"), raw("5.5"), raw("1e-40"), raw("1.4e-45"), raw("1e-46"), raw("1.1754944e-38"), raw("3.4028235e38"), raw("3.5e38"),
	raw("-3.4028235e38"), raw("1e-300"), raw("5e-324"), raw("1.7976931348623157e308"), raw("1e400"), raw("0.9999999999"), raw("1.0000001"), raw("16777217"), raw("2147483647"), raw("2147483648"),
	raw("-2147483648"), raw("4294967296"), raw("9007199254740993"), raw("9223372036854775807"), raw("9223372036854775808"), raw("-9223372036854775809"), raw("1e2"), raw("100"), raw("1536"), raw("1535"),
}

// texts are strings that something may stumble over.
var texts = []string{
	"", " ", "a", "auto", "none", "required", "json_object", "text", "\x00", "\ufeff", "\u2028", "é", "\U0001f600", "<|im_start|>", "<|im_end|>", "</think>", "<tool_call>", "{", "(a+)+$", "[0-9]{1,50}",
	"[", `\`, "(?!x)", strings.Repeat("a", 3000), strings.Repeat("é", 700), "https://example.invalid/x.png", "data:image/png;base64,AAAA", "root ::= \"a\" root | \"b\"", "start: \"ab\"", "resp_0", "NaN", "Infinity", "1",
}

// words are keys that objects of requests hold.
var words = []string{
	"type", "role", "content", "text", "name", "arguments", "function", "parameters", "json_schema", "schema", "properties", "required", "items", "enum", "pattern", "$ref", "$defs", "anyOf", "minLength",
	"maxLength", "minItems", "maxItems", "minimum", "maximum", "multipleOf", "additionalProperties", "include_usage", "continuous_usage_stats", "json", "regex", "choice", "grammar", "image_url", "url",
	"tool_calls", "tool_call_id", "id", "index", "budget_tokens", "effort", "format", "strict", "token_ids", "5", "1535", "99999",
}

// value draws any JSON value.
func value(r *rand.Rand, depth int) any {
	switch k := r.IntN(10); {
	case k < 3:
		return numbers[r.IntN(len(numbers))]
	case k < 5:
		return texts[r.IntN(len(texts))]
	case k == 5:
		return r.IntN(2) == 0
	case k == 6:
		return nil
	case depth <= 0:
		return r.IntN(100)
	case k == 7:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, value(r, depth-1))
		}
		return list
	case k == 8:
		return shape(r, depth)
	}
	o := map[string]any{}
	for range r.IntN(4) {
		o[words[r.IntN(len(words))]] = value(r, depth-1)
	}
	return o
}

// shape draws an object that is nearly right somewhere.
func shape(r *rand.Rand, depth int) any {
	v := func() any { return value(r, depth-1) }
	schema := map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "integer", words[r.IntN(len(words))]: v()}}, words[r.IntN(len(words))]: v()}
	return []any{
		map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "x", "schema": schema}},
		map[string]any{"json": schema},
		map[string]any{"regex": texts[r.IntN(len(texts))]},
		map[string]any{"grammar": texts[r.IntN(len(texts))]},
		map[string]any{"choice": []any{"yes", v()}},
		[]any{map[string]any{"type": "function", "function": map[string]any{"name": v(), "parameters": schema}}},
		map[string]any{"type": "function", "function": map[string]any{"name": v()}},
		[]any{map[string]any{"role": []string{"user", "assistant", "system", "tool", "developer", ""}[r.IntN(6)], "content": v()}, chatMessages[0]},
		[]any{map[string]any{"role": "user", "content": []any{map[string]any{"type": []string{"text", "image_url", "input_audio", "thinking"}[r.IntN(4)], "text": v(), "image_url": v()}}}},
		map[string]any{"include_usage": v(), "continuous_usage_stats": v()},
		map[string]any{fmt.Sprint(r.IntN(1600)): numbers[r.IntN(len(numbers))]},
		map[string]any{"type": "enabled", "budget_tokens": v()},
		map[string]any{"id": v(), "created": v(), "token_ids": v()},
	}[r.IntN(13)]
}

// Body draws a request: mostly a good one with some fields of any value, at times
// one that is broken as text.
func Body(r *rand.Rand) (path string, body []byte) {
	e := endpoints[r.IntN(len(endpoints))]
	if r.IntN(2) == 0 {
		e = endpoints[r.IntN(2)] // those that compute most
	}
	o := maps.Clone(e.good)
	o["model"] = "roundhouse-demo"
	o["max_tokens"] = 1 + r.IntN(12)
	for range max(1, r.IntN(7)-3) { // mostly one, so that it is looked at
		field := e.fields[r.IntN(len(e.fields))]
		if v := value(r, 3); slices.Contains(sampling[:10], field) && r.IntN(4) > 0 {
			o[field] = numbers[r.IntN(len(numbers))]
		} else {
			o[field] = v
		}
	}
	body, err := json.Marshal(o)
	if err != nil {
		panic("BUG: a body cannot be encoded: " + err.Error())
	}
	return e.path, damage(r, body)
}

// damage breaks one body in twenty.
func damage(r *rand.Rand, body []byte) []byte {
	switch r.IntN(100) {
	case 0:
		return body[:r.IntN(len(body))]
	case 1:
		body[r.IntN(len(body))] = byte(r.IntN(256))
	case 2:
		return append(bytes.Repeat([]byte(`{"a":`), 200), body...)
	case 3:
		return append([]byte(`{"model":"roundhouse-demo","model":"x",`), body[1:]...)
	case 4:
		return append([]byte("\xef\xbb\xbf"), body...)
	}
	return body
}

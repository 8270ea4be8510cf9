package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"roundhouse/worker"
	"roundhouse/worker/server"
	"roundhouse/worker/tokenizer"
)

// scripted is a form that leaves no choice: the answer is a given text.
type scripted struct {
	tokens []int32
	vocab  int
}

func (s *scripted) MinTokens() int { return len(s.tokens) }
func (s *scripted) Guide() worker.Guide {
	return &script{scripted: s, mask: make([]uint32, (s.vocab+31)/32)}
}

type script struct {
	*scripted
	mask []uint32
	at   int
}

func (s *script) Mask(int) []uint32 {
	clear(s.mask)
	id := s.tokens[s.at]
	s.mask[id/32] |= 1 << (id % 32)
	return s.mask
}

func (s *script) Accept(token int32) bool {
	ok := s.at < len(s.tokens) && s.tokens[s.at] == token
	s.at++
	return ok
}

func (s *script) Done() bool { return s.at >= len(s.tokens) }

// scriptedRig answers every restricted request with text, and keeps the last
// form that was asked for.
func scriptedRig(t *testing.T, text *string, form *server.Form) *rig {
	tok := loadTokenizer(t)
	return newRig(t, func(s *server.Config, _ *worker.Config) {
		s.Compile = func(f server.Form) (server.Compiled, error) {
			*form = f
			return &scripted{tok.Encode(*text, tokenizer.EncodeOptions{}), tok.Size()}, nil
		}
	})
}

var twoTools = []object{
	{"type": "function", "function": object{"name": "weather", "parameters": object{"type": "object", "properties": object{"city": object{"$ref": "#/$defs/City"}}, "$defs": object{"City": object{"type": "string"}}}}},
	{"type": "function", "function": object{"name": "clock"}},
}

func TestRequiredTools(t *testing.T) {
	text := `[{"name": "weather", "parameters": {"city": "Köln \"}]\" 北京", "days": [1, 2]}}, {"name": "clock", "parameters": {}}]`
	var form server.Form
	r := scriptedRig(t, &text, &form)
	body := object{"messages": []object{{"role": "user", "content": "hi"}}, "tools": twoTools, "tool_choice": "required", "max_tokens": 200}
	check := func(calls []any, finish any) {
		t.Helper()
		if len(calls) != 2 || finish != "tool_calls" {
			t.Fatalf("%d calls, finish %v: %v", len(calls), finish, calls)
		}
		first, second := calls[0].(object), calls[1].(object)
		var arguments object
		if err := json.Unmarshal([]byte(first["function"].(object)["arguments"].(string)), &arguments); err != nil || arguments["city"] != "Köln \"}]\" 北京" {
			t.Fatalf("arguments %v, %v", first, err)
		}
		if first["function"].(object)["name"] != "weather" || second["function"].(object)["name"] != "clock" || second["function"].(object)["arguments"] != "{}" {
			t.Fatalf("calls %v", calls)
		}
		if id, _ := first["id"].(string); !strings.HasPrefix(id, "chatcmpl-tool-") || id == second["id"] || first["type"] != "function" {
			t.Fatalf("calls %v", calls)
		}
	}
	choice := r.ask("/v1/chat/completions", body)["choices"].([]any)[0].(object)
	m := choice["message"].(object)
	if m["content"] != nil {
		t.Fatalf("content %v beside calls", m["content"])
	}
	check(m["tool_calls"].([]any), choice["finish_reason"])

	if form.Kind != server.FormCalls || len(form.Calls) != 2 || form.Calls[0].Name != "weather" || form.OneCall {
		t.Fatalf("form %+v", form)
	}

	calls := []any{object{"function": object{"arguments": ""}}, object{"function": object{"arguments": ""}}}
	var finish any
	for _, e := range r.stream("/v1/chat/completions", body) {
		if e == nil {
			continue
		}
		c := e["choices"].([]any)[0].(object)
		if c["finish_reason"] != nil {
			finish = c["finish_reason"]
		}
		list, _ := c["delta"].(object)["tool_calls"].([]any)
		for _, d := range list {
			d := d.(object)
			to := calls[int(d["index"].(float64))].(object)
			for k, v := range d["function"].(object) {
				if k == "arguments" {
					to["function"].(object)[k] = to["function"].(object)[k].(string) + v.(string)
					continue
				}
				to["function"].(object)[k] = v
			}
			for _, k := range []string{"id", "type"} {
				if d[k] != nil {
					to[k] = d[k]
				}
			}
		}
	}
	check(calls, finish)
	r.cutEverywhere("/v1/chat/completions", body)
}

func TestNamedTool(t *testing.T) {
	text := `{"city": "Bonn"}`
	var form server.Form
	r := scriptedRig(t, &text, &form)
	body := object{"messages": []object{{"role": "user", "content": "hi"}}, "tools": twoTools, "tool_choice": object{"type": "function", "function": object{"name": "weather"}}, "max_tokens": 50}
	choice := r.ask("/v1/chat/completions", body)["choices"].([]any)[0].(object)
	call := choice["message"].(object)["tool_calls"].([]any)[0].(object)["function"].(object)
	if call["name"] != "weather" || call["arguments"] != text || choice["finish_reason"] != "stop" {
		t.Fatalf("got %v", choice)
	}
	r.cutEverywhere("/v1/chat/completions", body)
}

func TestForms(t *testing.T) {
	text := "yes"
	var form server.Form
	r := scriptedRig(t, &text, &form)
	f := func(fields object, kind server.FormKind, want string) {
		t.Helper()
		form = server.Form{}
		a := r.ask("/v1/completions", with(object{"prompt": "p", "max_tokens": 9}, pairs(fields)...))
		if got := a["choices"].([]any)[0].(object); form.Kind != kind || kind != server.FormNone && got["text"] != "yes" {
			t.Errorf("%v: form %v, answer %v", fields, form, got)
		}
		if got := string(form.Schema) + form.Text + strings.Join(form.Choices, ","); got != want {
			t.Errorf("%v: got %s; want %s", fields, got, want)
		}
	}
	schema := object{"type": "string"}
	f(object{}, server.FormNone, "")
	f(object{"response_format": object{"type": "text"}}, server.FormNone, "")
	f(object{"response_format": object{"type": "json_object"}}, server.FormObject, "")
	f(object{"response_format": object{"type": "json_schema", "json_schema": object{"name": "x", "schema": schema}}}, server.FormSchema, `{"type":"string"}`)
	f(object{"structured_outputs": object{"json": schema}}, server.FormSchema, `{"type":"string"}`)
	f(object{"structured_outputs": object{"json": `{"type":"string"}`}}, server.FormSchema, `{"type":"string"}`)
	f(object{"structured_outputs": object{"regex": "y.*"}}, server.FormRegex, "y.*")
	f(object{"structured_outputs": object{"choice": []string{"yes", "no"}}}, server.FormChoice, "yes,no")
	f(object{"structured_outputs": object{"grammar": "root ::= x"}}, server.FormGrammar, "root ::= x")
	tag := `{"type":"structural_tag","structures":[],"triggers":[]}`
	f(object{"structured_outputs": object{"structural_tag": tag}}, server.FormTag, tag)
	f(object{"response_format": json.RawMessage(tag)}, server.FormTag, tag)
	f(object{"guided_choice": []string{"yes"}}, server.FormChoice, "yes")
	f(object{"guided_regex": "y"}, server.FormRegex, "y")

	r.refused(texts, `{"prompt":"p","max_tokens":9,"structured_outputs":{"regex":"a","choice":["b"]}}`, 400, bad, "<nil>", "only use one kind")
	r.refused(texts, `{"prompt":"p","max_tokens":9,"structured_outputs":{"choice":[]}}`, 400, bad, "<nil>", "cannot be empty")
	r.refused(texts, `{"prompt":"p","max_tokens":9,"response_format":{"type":"xml"}}`, 400, shape, "body.response_format.type", "'text', 'json_object'")
	r.refused(texts, `{"prompt":"p","max_tokens":9,"structured_outputs":{"structural_tag":{"format":{}}}}`, 400, bad, "structured_outputs", "Invalid structured_outputs structural_tag")
	r.refused(texts, `{"prompt":"p","max_tokens":9,"structured_outputs":{"grammar":" "}}`, 400, bad, "<nil>", "cannot be an empty string")
	r.refused(texts, `{"prompt":"p","max_tokens":9,"response_format":{"type":"json_schema"}}`, 400, bad, "response_format", "must be provided")
	// Where max_tokens leaves no room for the form, the answer is cut as any other.
	text = "a rather long answer"
	cut := r.ask(texts, object{"prompt": "p", "max_tokens": 2, "guided_regex": "a"})["choices"].([]any)[0].(object)
	if cut["finish_reason"] != "length" || !strings.HasPrefix(text, cut["text"].(string)) || cut["text"] == "" {
		t.Errorf("a form in too few tokens: %v", cut)
	}
	tools := func(choice string) string {
		data, _ := json.Marshal(twoTools)
		return fmt.Sprintf(`{"messages":[{"role":"user","content":"x"}],"tools":%s,"tool_choice":%s}`, data, choice)
	}
	r.refused(chats, tools(`"some"`), 400, bad, "tool_choice", "Invalid value for `tool_choice`")
	r.refused(chats, tools(`"auto"`), 400, bad, "<nil>", "--enable-auto-tool-choice")
	r.refused(chats, tools(`{"type":"function","function":{"name":"none"}}`), 400, bad, "tool_choice", "does not match any")
}

func pairs(o object) []any {
	var out []any
	for k, v := range o {
		out = append(out, k, v)
	}
	return out
}

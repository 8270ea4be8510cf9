package server_test

import (
	"fmt"
	"strings"
	"testing"

	"roundhouse/worker"
	"roundhouse/worker/server"
	"roundhouse/worker/tokenizer"
)

// dictated makes the model say a text after a prompt of so many tokens.
type dictated struct {
	tokens []int32
	prompt int
}

func (d *dictated) bias(context []int32, logits []float32) {
	if at := len(context) - d.prompt; d.prompt > 0 && at >= 0 && at < len(d.tokens) {
		logits[d.tokens[at]] += 1000
	}
}

// dictate sets what the model says in answer to body.
func (r *rig) dictate(d *dictated, body object, text string) object {
	r.t.Helper()
	end, _ := r.tok.TokenID("<|im_end|>")
	d.tokens = append(r.tok.Encode(text, tokenizer.EncodeOptions{}), end)
	d.prompt = 0
	a := r.ask(chats, with(body, "max_tokens", 1))
	d.prompt = int(a["usage"].(object)["prompt_tokens"].(float64))
	return with(body, "temperature", 0, "max_tokens", len(d.tokens)+5)
}

func parserRig(t *testing.T, d *dictated, tools, reasoning string) *rig {
	r := newRig(t, func(s *server.Config, _ *worker.Config) { s.ToolParser, s.ReasoningParser = tools, reasoning })
	r.model.Bias = d.bias
	return r
}

func TestAutoTools(t *testing.T) {
	var d dictated
	r := parserRig(t, &d, "hermes", "")
	body := object{"messages": []object{{"role": "user", "content": "hi"}}, "tools": twoTools}
	body = r.dictate(&d, body, "Sure.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Köln\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"clock\", \"arguments\": {}}\n</tool_call>")
	c := r.ask(chats, body)["choices"].([]any)[0].(object)
	m := c["message"].(object)
	calls := m["tool_calls"].([]any)
	if c["finish_reason"] != "tool_calls" || m["content"] != "Sure.\n" || len(calls) != 2 {
		t.Fatalf("got %v", c)
	}
	if f := calls[0].(object)["function"].(object); f["name"] != "weather" || f["arguments"] != `{"city": "Köln"}` {
		t.Fatalf("got %v", f)
	}
	r.cutEverywhere(chats, body)

	if _, text := r.get("/metrics"); !strings.Contains(text, `vllm:tool_call_parser_invocations_total{model_name="m",mode="non_streaming",outcome="tool_call",request_type="chat_completions"} 1.0`) {
		t.Error("the call is not counted")
	}
	none := r.ask(chats, with(body, "tool_choice", "none"))["choices"].([]any)[0].(object)
	if none["finish_reason"] != "stop" || none["message"].(object)["tool_calls"] != nil {
		t.Fatalf("with none: %v", none)
	}
}

func TestReasoning(t *testing.T) {
	var d dictated
	r := parserRig(t, &d, "", "deepseek_r1")
	body := object{"messages": []object{{"role": "user", "content": "hi"}}}
	body = r.dictate(&d, body, "let me see: 1 and 2</think>Three.")
	a := r.ask(chats, body)
	m := a["choices"].([]any)[0].(object)["message"].(object)
	if m["reasoning"] != "let me see: 1 and 2" || m["content"] != "Three." {
		t.Fatalf("got %v", m)
	}
	n := len(r.tok.Encode("let me see: 1 and 2</think>", tokenizer.EncodeOptions{}))
	if got := a["usage"].(object)["completion_tokens_details"].(object)["reasoning_tokens"].(float64); int(got) < n-2 || int(got) > n+1 {
		t.Fatalf("%v reasoning tokens; the text has %d", got, n)
	}
	r.cutEverywhere(chats, body)

	names, events := r.named("/v1/responses", object{"input": "hi", "temperature": 0, "max_output_tokens": len(d.tokens) + 5})
	last := events[len(events)-1]["response"].(object)
	if names[len(names)-1] != "response.completed" || fmt.Sprint(last["output"]) == "" || len(last["output"].([]any)) != 2 {
		t.Fatalf("responses: %v", last)
	}
	msg := r.ask("/v1/messages", object{"messages": body["messages"], "max_tokens": len(d.tokens) + 5, "temperature": 0})
	if blocks := msg["content"].([]any); len(blocks) != 2 || blocks[0].(object)["thinking"] != "let me see: 1 and 2" || blocks[1].(object)["text"] != "Three." {
		t.Fatalf("messages: %v", msg)
	}
}

// TestFormAfterReasoning holds that a form begins where the reasoning ends.
func TestFormAfterReasoning(t *testing.T) {
	var d dictated
	tok := loadTokenizer(t)
	r := newRig(t, func(s *server.Config, _ *worker.Config) {
		s.ReasoningParser = "deepseek_r1"
		s.Compile = func(server.Form) (server.Compiled, error) {
			return &scripted{tok.Encode(`{"a":1}`, tokenizer.EncodeOptions{}), tok.Size()}, nil
		}
	})
	r.model.Bias = d.bias
	body := object{"messages": []object{{"role": "user", "content": "hi"}}}
	body = r.dictate(&d, body, "hm, JSON</think>")
	d.tokens = d.tokens[:len(d.tokens)-1]
	body = with(body, "response_format", object{"type": "json_object"}, "max_tokens", 60)
	m := r.ask(chats, body)["choices"].([]any)[0].(object)["message"].(object)
	if m["reasoning"] != "hm, JSON" || m["content"] != `{"a":1}` {
		t.Fatalf("got %v", m)
	}
	r.cutEverywhere(chats, body)
}

package server_test

import (
	"strings"
	"testing"

	"roundhouse/worker"
	"roundhouse/worker/server"
	"roundhouse/worker/tokenizer"
)

// TestThinkWordInQuestion holds that what a user writes about the markers of
// thoughts does not take the form off the answer.
func TestThinkWordInQuestion(t *testing.T) {
	tok := loadTokenizer(t)
	r := newRig(t, func(s *server.Config, _ *worker.Config) {
		s.ReasoningParser = "qwen3"
		s.Compile = func(server.Form) (server.Compiled, error) {
			return &scripted{tok.Encode(`{"a":1}`, tokenizer.EncodeOptions{}), tok.Size()}, nil
		}
	})
	for _, question := range []string{"What is 2+2?", "What does <think> mean? What is 2+2?", "And </think>?"} {
		m := r.ask(chats, object{
			"messages": []object{{"role": "user", "content": question}}, "response_format": object{"type": "json_object"}, "max_tokens": 40, "temperature": 0,
		})["choices"].([]any)[0].(object)["message"].(object)
		if m["content"] != `{"a":1}` || m["reasoning"] != nil {
			t.Errorf("%s: %v", question, m)
		}
	}
}

// TestHiddenReasoning holds that thoughts that are not wanted are read and left
// out, tokens and logprobs with them, and that a stream says none either.
func TestHiddenReasoning(t *testing.T) {
	var d dictated
	r := parserRig(t, &d, "", "deepseek_r1")
	body := r.dictate(&d, object{"messages": []object{{"role": "user", "content": "hi"}}}, "a secret</think>Three.")
	body = with(body, "include_reasoning", false, "logprobs", true, "return_token_ids", true)
	a := r.ask(chats, body)
	c := a["choices"].([]any)[0].(object)
	if m := c["message"].(object); m["content"] != "Three." || m["reasoning"] != nil || c["token_ids"] != nil || c["logprobs"] != nil {
		t.Errorf("got %v", c)
	}
	if n := a["usage"].(object)["completion_tokens_details"].(object)["reasoning_tokens"].(float64); n == 0 {
		t.Error("hidden thoughts are not counted")
	}
	said := ""
	for _, e := range r.stream(chats, body) {
		if strings.Contains(text(e), "secret") {
			t.Errorf("streamed %v", e)
		}
		said += read(e).text
	}
	if said != "Three." {
		t.Errorf("streamed %q", said)
	}
	items := r.ask("/v1/responses", object{"input": "hi", "temperature": 0, "max_output_tokens": len(d.tokens) + 5, "include_reasoning": false})["output"].([]any)
	if len(items) != 1 || items[0].(object)["type"] != "message" {
		t.Errorf("items %v", items)
	}
}

// TestThinkingBudget holds that thoughts end when their budget is used up, and
// that the answer's tokens remain.
func TestThinkingBudget(t *testing.T) {
	var d dictated
	r := parserRig(t, &d, "", "deepseek_r1")
	body := r.dictate(&d, object{"messages": []object{{"role": "user", "content": "hi"}}}, "a b c d e f g h i j k l m n o p q r s t u v w x y z</think>Three.")
	m := r.ask(chats, with(body, "thinking_token_budget", 4))["choices"].([]any)[0].(object)["message"].(object)
	whole := r.ask(chats, with(body, "thinking_token_budget", -1))["choices"].([]any)[0].(object)["message"].(object)
	thought, _ := m["reasoning"].(string)
	long := whole["reasoning"].(string)
	if n := len(r.tok.Encode(thought, tokenizer.EncodeOptions{})); thought == "" || n > 5 || !strings.HasPrefix(long, thought) || len(long) <= len(thought) {
		t.Errorf("thoughts with a budget of 4 tokens: %q; of all: %q", thought, long)
	}
	if m["content"] == nil || whole["content"] != "Three." {
		t.Errorf("answers: %v, %v", m["content"], whole["content"])
	}
	msg := object{"messages": body["messages"], "max_tokens": 300, "thinking": object{"type": "enabled", "budget_tokens": 100}}
	if code, data := r.post("/v1/messages", msg); code != 400 || !strings.Contains(string(data), "greater than or equal to 1024") {
		t.Errorf("a budget too small: %d %s", code, data)
	}
}

// TestSealedReasoning holds that a client which keeps nothing here gets the
// thoughts in a form that it sends back, and that the model sees them again.
func TestSealedReasoning(t *testing.T) {
	var d dictated
	r := parserRig(t, &d, "", "deepseek_r1")
	r.dictate(&d, object{"messages": []object{{"role": "user", "content": "hi"}}}, "let me see</think>Three.")
	ask := object{"input": "hi", "temperature": 0, "max_output_tokens": len(d.tokens) + 5, "store": false, "include": []string{"reasoning.encrypted_content"}}
	thought := r.ask("/v1/responses", ask)["output"].([]any)[0].(object)
	sealed, _ := thought["encrypted_content"].(string)
	if thought["type"] != "reasoning" || sealed == "" || strings.Contains(sealed, "let me") {
		t.Fatalf("got %v", thought)
	}
	var seen []any
	again := newRig(t, func(s *server.Config, _ *worker.Config) {
		render := s.Template
		s.Template = func(vars map[string]any) ([]tokenizer.Segment, error) {
			seen, _ = vars["messages"].([]any)
			return render(vars)
		}
	})
	again.ask("/v1/responses", object{"max_output_tokens": 2, "input": []object{
		{"role": "user", "content": "hi"}, {"type": "reasoning", "summary": []any{}, "encrypted_content": sealed}, {"role": "assistant", "content": "Three."}, {"role": "user", "content": "and?"},
	}})
	if len(seen) != 3 {
		t.Fatalf("%d messages", len(seen))
	}
	if v, _ := seen[1].(interface{ Get(string) (any, bool) }).Get("reasoning_content"); v != "let me see" {
		t.Errorf("the template sees the thoughts %v", v)
	}
}

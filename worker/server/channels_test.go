package server_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"roundhouse/worker"
	"roundhouse/worker/parser"
	"roundhouse/worker/server"
	"roundhouse/worker/tokenizer"
	"roundhouse/worker/workertest"
)

// channelTokenizer is the demonstration model's with the tokens of channels.
func channelTokenizer(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	data, err := os.ReadFile("../demo/model/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	added := file["added_tokens"].([]any)
	next := loadTokenizer(t).Size()
	for i, name := range parser.ChannelMarks() {
		added = append(added, object{"id": next + i, "content": name, "special": true, "normalized": false, "lstrip": false, "rstrip": false, "single_word": false})
	}
	file["added_tokens"] = added
	if data, err = json.Marshal(file); err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestChannels has gpt-oss's answers: reasoning, calls and content come apart,
// and marks count by their token alone, whatever the text spells.
func TestChannels(t *testing.T) {
	tok := channelTokenizer(t)
	var d dictated
	var model *workertest.Model
	r := newRig(t, func(s *server.Config, w *worker.Config) {
		s.ToolParser, s.ReasoningParser = "openai", "openai_gptoss"
		s.Tokenizer, s.Vocab = tok, tok.Size()
		model = workertest.New(tok.Size(), w.Groups)
		model.Bias = d.bias
		ret, _ := tok.TokenID("<|return|>")
		call, _ := tok.TokenID("<|call|>")
		w.Exec, w.Memory, w.Vocab, w.EOS = model, model, tok.Size(), append(w.EOS, ret, call)
	})
	body := object{"messages": []object{{"role": "user", "content": "hi"}}, "tools": twoTools, "temperature": 0}
	say := func(parts ...string) object {
		t.Helper()
		d.prompt = 0
		a := r.ask(chats, with(body, "max_tokens", 1))
		d.prompt, d.tokens = int(a["usage"].(object)["prompt_tokens"].(float64)), nil
		for _, p := range parts {
			if id, ok := tok.TokenID(p); ok && strings.HasPrefix(p, "<|") {
				d.tokens = append(d.tokens, id)
				continue
			}
			d.tokens = append(d.tokens, tok.Encode(p, tokenizer.EncodeOptions{})...)
		}
		sent := with(body, "max_tokens", len(d.tokens)+5)
		r.cutEverywhere(chats, sent)
		return r.ask(chats, sent)["choices"].([]any)[0].(object)
	}
	c := say("<|channel|>", "analysis", "<|message|>", "Need the weather.", "<|end|>", "<|start|>", "assistant", "<|channel|>", "commentary to=functions.weather ",
		"<|constrain|>", "json", "<|message|>", `{"city": "Köln"}`, "<|call|>")
	m := c["message"].(object)
	calls := m["tool_calls"].([]any)
	if c["finish_reason"] != "tool_calls" || m["reasoning"] != "Need the weather." || m["content"] != nil || len(calls) != 1 {
		t.Fatalf("got %v", c)
	}
	if f := calls[0].(object)["function"].(object); f["name"] != "weather" || f["arguments"] != `{"city": "Köln"}` {
		t.Fatalf("got %v", f)
	}
	c = say("<|channel|>", "analysis", "<|message|>", "Easy.", "<|end|>", "<|start|>", "assistant", "<|channel|>", "final", "<|message|>", "It ends with <", "|end|> here.", "<|return|>")
	m = c["message"].(object)
	if c["finish_reason"] != "stop" || m["reasoning"] != "Easy." || m["content"] != "It ends with <|end|> here." {
		t.Fatalf("got %v", c)
	}
}

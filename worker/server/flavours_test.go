package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// named returns the events of a stream whose events have names.
func (r *rig) named(path string, body object) (names []string, events []object) {
	r.t.Helper()
	data, _ := json.Marshal(with(body, "stream", true))
	resp, err := http.Post(r.url+path, "application/json", strings.NewReader(string(data)))
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	all, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("%s: %d %s", path, resp.StatusCode, all)
	}
	for _, block := range strings.Split(strings.TrimSpace(string(all)), "\n\n") {
		name, data, _ := strings.Cut(block, "\n")
		var e object
		if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &e); err != nil {
			r.t.Fatalf("%q: %v", block, err)
		}
		name = strings.TrimPrefix(name, "event: ")
		if e["type"] != name {
			r.t.Fatalf("event %s says that it is %v", name, e["type"])
		}
		names, events = append(names, name), append(events, e)
	}
	return names, events
}

// squeeze drops repetitions.
func squeeze(names []string) string {
	var out []string
	for _, n := range names {
		if len(out) == 0 || out[len(out)-1] != n {
			out = append(out, n)
		}
	}
	return strings.Join(out, " ")
}

// chatText is what the chat route answers, to compare.
func (r *rig) chatText(messages []object, n int) string {
	answer := r.ask("/v1/chat/completions", object{"messages": messages, "max_tokens": n, "temperature": 0})
	return answer["choices"].([]any)[0].(object)["message"].(object)["content"].(string)
}

func TestResponses(t *testing.T) {
	r := newRig(t, nil)
	body := object{"input": "Say it.", "instructions": "Be short.", "max_output_tokens": 12, "temperature": 0}
	want := r.chatText([]object{{"role": "system", "content": "Be short."}, {"role": "user", "content": "Say it."}}, 12)
	textOf := func(a object) string {
		return a["output"].([]any)[0].(object)["content"].([]any)[0].(object)["text"].(string)
	}
	a := r.ask("/v1/responses", body)
	if textOf(a) != want || a["status"] != "incomplete" || a["object"] != "response" {
		t.Fatalf("got %v; want %q", a, want)
	}
	if u := a["usage"].(object); u["output_tokens"].(float64) != 12 || u["total_tokens"].(float64) != 12+u["input_tokens"].(float64) {
		t.Fatalf("usage %v", u)
	}
	parts := with(body, "input", []object{{"role": "user", "content": []object{{"type": "input_text", "text": "Say it."}}}})
	if got := textOf(r.ask("/v1/responses", parts)); got != want {
		t.Fatalf("in parts: got %q; want %q", got, want)
	}
	names, events := r.named("/v1/responses", body)
	order := "response.created response.in_progress response.output_item.added response.content_part.added response.output_text.delta " +
		"response.output_text.done response.content_part.done response.output_item.done response.incomplete"
	if squeeze(names) != order {
		t.Fatalf("events %s", squeeze(names))
	}
	text := ""
	for i, e := range events {
		if e["sequence_number"].(float64) != float64(i) {
			t.Fatalf("event %d has number %v", i, e["sequence_number"])
		}
		if d, ok := e["delta"].(string); ok {
			text += d
		}
	}
	if last := events[len(events)-1]["response"].(object); text != want || textOf(last) != want {
		t.Fatalf("streamed %q and %v; want %q", text, last, want)
	}
	for path, code := range map[string]int{`{"input":"x","previous_response_id":"resp_1"}`: 404, `{"input":"x","background":true,"store":false}`: 400, `{}`: 400, `{"input":[]}`: 400, `{"input":[{"type":"item_reference"}]}`: 400} {
		if got, data := r.post("/v1/responses", path); got != code {
			t.Errorf("%s: %d %s; want %d", path, got, data, code)
		}
	}
}

func TestMessages(t *testing.T) {
	r := newRig(t, nil)
	body := object{"model": "m", "max_tokens": 12, "temperature": 0, "system": []object{{"type": "text", "text": "Be short."}}, "messages": []object{{"role": "user", "content": "Say it."}}}
	want := r.chatText([]object{{"role": "system", "content": "Be short."}, {"role": "user", "content": "Say it."}}, 12)
	a := r.ask("/v1/messages", body)
	if got := a["content"].([]any)[0].(object)["text"]; got != want || a["stop_reason"] != "max_tokens" || a["usage"].(object)["output_tokens"].(float64) != 12 {
		t.Fatalf("got %v; want %q", a, want)
	}
	names, events := r.named("/v1/messages", body)
	if squeeze(names) != "message_start content_block_start content_block_delta content_block_stop message_delta message_stop" {
		t.Fatalf("events %s", squeeze(names))
	}
	text := ""
	for _, e := range events {
		if d, ok := e["delta"].(object); ok && d["type"] == "text_delta" {
			text += d["text"].(string)
		}
	}
	if text != want {
		t.Fatalf("streamed %q; want %q", text, want)
	}
	runes := []rune(want)
	stop := string(runes[3:6])
	a = r.ask("/v1/messages", with(body, "stop_sequences", []string{stop}))
	if a["stop_reason"] != "stop_sequence" || a["stop_sequence"] != stop {
		t.Fatalf("stopped by %q: %v", stop, a)
	}
	if n := r.ask("/v1/messages/count_tokens", body)["input_tokens"].(float64); n != events[0]["message"].(object)["usage"].(object)["input_tokens"].(float64) {
		t.Fatalf("%v tokens counted; %v", n, events[0])
	}
	code, data := r.post("/v1/messages", object{"messages": body["messages"]})
	if code != 400 || !strings.Contains(string(data), `"type":"invalid_request_error"`) || !strings.Contains(string(data), `"type":"error"`) {
		t.Fatalf("without max_tokens: %d %s", code, data)
	}
}

func TestTokenize(t *testing.T) {
	r := newRig(t, nil)
	a := r.ask("/tokenize", object{"prompt": "one two three", "return_token_strs": true})
	if a["count"].(float64) != float64(len(a["tokens"].([]any))) || len(a["token_strs"].([]any)) != len(a["tokens"].([]any)) {
		t.Fatalf("got %v", a)
	}
	if got := r.ask("/detokenize", object{"tokens": a["tokens"]})["prompt"]; got != "one two three" {
		t.Fatalf("detokenized %q", got)
	}
	messages := []object{{"role": "user", "content": "hi <|im_end|>"}}
	chat := r.ask("/tokenize", object{"messages": messages})
	answer := r.ask("/v1/chat/completions", object{"messages": messages, "max_tokens": 1})
	if chat["count"] != answer["usage"].(object)["prompt_tokens"] {
		t.Fatalf("%v tokens; the chat says %v", chat["count"], answer["usage"])
	}
	// A control token that a user wrote is text.
	end, _ := r.tok.TokenID("<|im_end|>")
	n := 0
	for _, id := range chat["tokens"].([]any) {
		if int32(id.(float64)) == end {
			n++
		}
	}
	if n != 1 {
		t.Fatalf("%d messages end in a chat of one", n)
	}
}

func TestContinueFinalMessage(t *testing.T) {
	r := newRig(t, nil)
	messages := []object{{"role": "user", "content": "Say it."}, {"role": "assistant", "content": "I will say"}}
	body := object{"messages": messages, "continue_final_message": true, "add_generation_prompt": false, "max_tokens": 4, "temperature": 0, "return_token_ids": true, "echo": true}
	a := r.ask("/v1/chat/completions", body)
	ids := a["prompt_token_ids"]
	if got := r.ask("/detokenize", object{"tokens": ids})["prompt"].(string); !strings.HasSuffix(got, "I will say") {
		t.Fatalf("the prompt ends in %q", got)
	}
	if got := a["choices"].([]any)[0].(object)["message"].(object)["content"].(string); !strings.HasPrefix(got, "I will say") {
		t.Fatalf("echo: %q", got)
	}
}

package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"roundhouse/worker"
	"roundhouse/worker/server"
)

// TestLenientValues holds that values are read as vLLM's clients in other
// languages write them, and that fields which change no answer are taken.
func TestLenientValues(t *testing.T) {
	r := newRig(t, nil)
	body := chatBody(`,"max_tokens":4,"temperature":0,"ignore_eos":true`)
	_, plain := r.post(chats, body)
	var want struct {
		Choices []struct{ Message struct{ Content string } }
		Usage   struct {
			Prompt int `json:"prompt_tokens"`
		}
	}
	if err := json.Unmarshal(plain, &want); err != nil {
		t.Fatal(err)
	}
	for _, fields := range []string{
		`"max_tokens":4.0`, `"max_tokens":"4"`, `"max_tokens":4e0`, `"temperature":"0.0"`, `"temperature":false`, `"n":true`, `"ignore_eos":"yes"`,
		`"stream":"false"`, `"stream":0`, `"best_of":3`, `"functions":[]`, `"function_call":"auto"`, `"audio":{}`, `"web_search_options":{}`,
		`"modalities":["text","audio"]`, `"vllm_xargs":{"a":1}`, `"kv_transfer_params":{"a":1}`, `"ec_transfer_params":{}`, `"stream_interval":4`,
		`"routed_experts_prompt_start":0`, `"return_token_offsets":true`, `"mm_processor_kwargs":{}`, `"media_io_kwargs":{}`,
		`"repetition_detection":{"max_pattern_size":0}`, `"include_reasoning":false`, `"max_tokens":9,"max_tokens":4`,
	} {
		code, data := r.post(chats, strings.TrimSuffix(body, "}")+","+fields+"}")
		got := want
		if err := json.Unmarshal(data, &got); err != nil || code != http.StatusOK || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %d %s; want %s", fields, code, data, plain)
		}
	}
	if code, data := r.post(chats, "\xef\xbb\xbf"+body); code != http.StatusOK {
		t.Errorf("behind a byte order mark: %d %s", code, data)
	}
	if code, data := r.post("/detokenize", `{"tokens":[999999]}`); code != http.StatusOK || string(data) != `{"prompt":""}` {
		t.Errorf("a token that is none: %d %s", code, data)
	}
	// A stream in words.
	if _, data := r.post(chats, chatBody(`,"max_tokens":2,"stream":"on"`)); !strings.Contains(string(data), "data: [DONE]") {
		t.Errorf("streamed on: %s", data)
	}
}

// TestContextLeft holds that an answer is as long as the context lets it be,
// whatever more was asked for.
func TestContextLeft(t *testing.T) {
	r := newRig(t, nil)
	prompt := strings.Repeat("one ", 240)
	n := len(r.tok.Encode(prompt, tokenizerOptions))
	if n >= 512 || n < 450 {
		t.Fatalf("the prompt has %d tokens", n)
	}
	a := r.ask(texts, object{"prompt": prompt, "max_tokens": 512, "ignore_eos": true})
	u := a["usage"].(object)
	if c := a["choices"].([]any)[0].(object); c["finish_reason"] != "length" || u["total_tokens"].(float64) != 512 {
		t.Errorf("completion: %v %v", c["finish_reason"], u)
	}
	hi := object{"role": "user", "content": prompt}
	if u := r.ask(chats, object{"messages": []object{hi}, "max_tokens": 400, "ignore_eos": true})["usage"].(object); u["total_tokens"].(float64) != 512 {
		t.Errorf("chat: %v", u)
	}
	if a := r.ask("/v1/responses", object{"input": prompt, "max_output_tokens": 400, "ignore_eos": true}); a["status"] != "incomplete" || a["max_output_tokens"].(float64) >= 60 {
		t.Errorf("responses: %v", a["max_output_tokens"])
	}
	r.ask("/v1/messages", object{"messages": []object{hi}, "max_tokens": 400})
	full := make([]int, 512)
	if code, data := r.post(texts, object{"prompt": full, "max_tokens": 5}); code != 400 || !strings.Contains(string(data), "max_tokens must be at least 1, got 0.") {
		t.Errorf("a prompt that fills the context: %d %s", code, data)
	}
}

// TestSpoiltHistory holds that a conversation goes on whatever lies in its past.
func TestSpoiltHistory(t *testing.T) {
	r := newRig(t, nil)
	call := func(arguments string) object {
		return object{"role": "assistant", "content": "", "tool_calls": []object{{"id": "a", "type": "function", "function": object{"name": "f", "arguments": arguments}}}}
	}
	for _, m := range []object{call(`{"bad`), call("[]"), call(""), {"role": "assistant", "content": "", "tool_calls": []object{}}, {"role": "assistant", "reasoning_content": "hm", "content": "x"}} {
		r.ask(chats, object{"messages": []object{{"role": "user", "content": "x"}, m, {"role": "user", "content": "y"}}, "max_tokens": 2})
	}
}

// TestDevelopers holds that messages of developers are those of the system for
// a template that knows no developers, and one with it.
func TestDevelopers(t *testing.T) {
	r := newRig(t, nil)
	ids := func(messages ...object) string {
		return text(r.ask(chats, object{"messages": messages, "max_tokens": 1, "return_token_ids": true})["prompt_token_ids"])
	}
	u := object{"role": "user", "content": "hi"}
	if got, want := ids(object{"role": "developer", "content": "be brief"}, u), ids(object{"role": "system", "content": "be brief"}, u); got != want {
		t.Errorf("developer %s; system %s", got, want)
	}
	if got, want := ids(object{"role": "system", "content": "a"}, u, object{"role": "developer", "content": "b"}), ids(object{"role": "system", "content": "a\n\nb"}, u); got != want {
		t.Errorf("two: %s; one: %s", got, want)
	}
}

// TestEcho holds that the last message is said again if it is the model's own.
func TestEcho(t *testing.T) {
	r := newRig(t, nil)
	ask := func(last string) object {
		return r.ask(chats, object{"messages": []object{{"role": "user", "content": "hi"}, {"role": last, "content": "well,"}}, "echo": true, "max_tokens": 3, "logprobs": true})
	}
	said := func(a object) string { return a["choices"].([]any)[0].(object)["message"].(object)["content"].(string) }
	if own, other := said(ask("assistant")), said(ask("user")); !strings.HasPrefix(own, "well,") || strings.HasPrefix(other, "well,") {
		t.Errorf("own %q, other %q", own, other)
	}
	if ask("user")["prompt_logprobs"] == nil {
		t.Error("echo without the prompt's logprobs")
	}
}

// TestLogprobsByID holds that the sampled token comes first among those asked
// for.
func TestLogprobsByID(t *testing.T) {
	r := newRig(t, nil)
	a := r.ask(chats, object{"messages": []object{{"role": "user", "content": "hi"}}, "max_tokens": 2, "logprobs": true, "logprob_token_ids": []int{5, 6}, "allowed_token_ids": []int{7}})
	for _, c := range a["choices"].([]any)[0].(object)["logprobs"].(object)["content"].([]any) {
		c := c.(object)
		top := c["top_logprobs"].([]any)
		if len(top) != 3 || top[0].(object)["token"] != c["token"] || text(top[0].(object)["logprob"]) != text(c["logprob"]) {
			t.Errorf("got %v", c)
		}
	}
}

// TestUsageShapes holds where an account comes and what is in it.
func TestUsageShapes(t *testing.T) {
	body := object{"messages": []object{{"role": "user", "content": strings.Repeat("one two three ", 20)}}, "max_tokens": 3, "ignore_eos": true}
	r := newRig(t, func(s *server.Config, _ *worker.Config) { s.ForceUsage, s.PromptTokensDetails = true, true })
	for i, e := range r.stream(chats, body) {
		if e != nil && e["usage"] == nil {
			t.Errorf("event %d has no account: %v", i, e)
		}
	}
	d := r.ask(chats, body)["usage"].(object)["prompt_tokens_details"].(object)
	if _, ok := d["multimodal_tokens"]; !ok || d["cached_tokens"].(float64) == 0 || d["created_cache_tokens"] == nil {
		t.Errorf("details %v", d)
	}
	u := r.ask("/v1/messages", body)["usage"].(object)
	total := r.ask("/v1/messages/count_tokens", body)
	if sum := u["input_tokens"].(float64) + u["cache_read_input_tokens"].(float64) + u["cache_creation_input_tokens"].(float64); sum != total["input_tokens"] || u["cache_read_input_tokens"].(float64) == 0 {
		t.Errorf("messages: %v of %v", u, total)
	}
	if total["context_management"].(object)["original_input_tokens"] != total["input_tokens"] {
		t.Errorf("counted: %v", total)
	}
}

// TestEventForEveryToken holds that a stream has an event a token also while
// text is held back, because it may begin a stop string.
func TestEventForEveryToken(t *testing.T) {
	r := newRig(t, nil)
	stop := strings.Repeat("never", 40)
	for path, body := range map[string]object{
		texts: {"prompt": "a", "max_tokens": 20, "ignore_eos": true, "stop": []string{stop}},
		chats: {"messages": []object{{"role": "user", "content": "a"}}, "max_tokens": 20, "ignore_eos": true, "stop": []string{stop}},
	} {
		events := 0
		for _, e := range r.stream(path, body) {
			if e != nil {
				events++
			}
		}
		if want := map[string]int{texts: 20, chats: 21}[path]; events != want {
			t.Errorf("%s: %d events; want %d", path, events, want)
		}
	}
}

// TestBatch holds that several chats in one body are answered as each alone.
func TestBatch(t *testing.T) {
	r := newRig(t, nil)
	chat := func(text string) []object { return []object{{"role": "user", "content": text}} }
	fields := object{"max_tokens": 5, "temperature": 0, "ignore_eos": true}
	a := r.ask("/v1/chat/completions/batch", with(fields, "messages", [][]object{chat("one"), chat("two three")}))
	prompts := 0.0
	for i, prompt := range []string{"one", "two three"} {
		alone := r.ask(chats, with(fields, "messages", chat(prompt)))
		c := a["choices"].([]any)[i].(object)
		prompts += alone["usage"].(object)["prompt_tokens"].(float64)
		if want := alone["choices"].([]any)[0].(object); c["index"].(float64) != float64(i) || text(c["message"]) != text(want["message"]) {
			t.Errorf("chat %d: %v; alone %v", i, c, want)
		}
	}
	if u := a["usage"].(object); u["prompt_tokens"].(float64) != prompts || u["completion_tokens"].(float64) != 10 {
		t.Errorf("usage %v", u)
	}
	r.refused("/v1/chat/completions/batch", `{"messages":[]}`, 400, shape, "body.messages", "at least 1")
	r.refused("/v1/chat/completions/batch", `{"messages":[[{"role":"user","content":"x"}]],"n":2}`, 400, bad, "n", "`n > 1`")
}

// TestGenerativeScore holds that a score is the chance of the first label's
// token, as its logprob tells it too.
func TestGenerativeScore(t *testing.T) {
	r := newRig(t, nil)
	body := object{"query": "one ", "items": []string{"two", "three four"}, "label_token_ids": []int{40, 41}}
	shares, chances := r.ask("/generative_scoring", body), r.ask("/generative_scoring", with(body, "apply_softmax", false))
	swapped := r.ask("/generative_scoring", with(body, "label_token_ids", []int{41, 40}))
	score := func(a object, i int) float64 { return a["data"].([]any)[i].(object)["score"].(float64) }
	for i := range 2 {
		if sum := score(shares, i) + score(swapped, i); sum < 0.999 || sum > 1.001 || score(chances, i) >= score(shares, i) {
			t.Errorf("item %d: shares %v + %v, chance %v", i, score(shares, i), score(swapped, i), score(chances, i))
		}
	}
	if u := shares["usage"].(object); u["completion_tokens"].(float64) != 2 {
		t.Errorf("usage %v", u)
	}
	r.refused("/generative_scoring", `{"query":"a","items":["b"],"label_token_ids":[]}`, 400, bad, "<nil>", "at least one token")
	r.refused("/generative_scoring", `{"query":"a","items":["b"],"label_token_ids":[999999]}`, 400, bad, "<nil>", "out of the vocabulary")
}

// TestRepetition holds that an answer in circles is ended, at the same token
// after a resume.
func TestRepetition(t *testing.T) {
	r := newRig(t, nil)
	body := object{"prompt": "a", "max_tokens": 50, "allowed_token_ids": []int{40}, "repetition_detection": object{"max_pattern_size": 3, "min_pattern_size": 2, "min_count": 4}}
	a := r.ask(texts, body)
	c := a["choices"].([]any)[0].(object)
	if c["finish_reason"] != "repetition" || c["stop_reason"] != "repetition_detected" || a["usage"].(object)["completion_tokens"].(float64) != 8 {
		t.Fatalf("got %v", a)
	}
	r.cutEverywhere(texts, with(body, "temperature", 0))
}

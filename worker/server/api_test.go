package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"roundhouse/worker"
	"roundhouse/worker/api"
	"roundhouse/worker/server"
)

// refused sends a body and compares the error.
func (r *rig) refused(path, body string, code int, kind, param, message string) {
	r.t.Helper()
	got, data := r.post(path, body)
	var e struct {
		Error struct {
			Message, Type string
			Param         any
			Code          int
		}
	}
	if err := json.Unmarshal(data, &e); err != nil {
		r.t.Fatalf("%s %s: %s is not JSON", path, body, data)
	}
	p := fmt.Sprint(e.Error.Param)
	if got != code || e.Error.Code != code || e.Error.Type != kind || p != param || !strings.Contains(e.Error.Message, message) {
		r.t.Errorf("%s %.200s:\n got %d %s\nwant %d %s %s %q", path, body, got, data, code, kind, param, message)
	}
}

// What no client should send, and the answer to each.
const (
	chats, texts = "/v1/chat/completions", "/v1/completions"
	bad, shape   = "BadRequestError", "Bad Request"
)

func chatBody(fields string) string {
	return `{"messages":[{"role":"user","content":"hi"}]` + fields + `}`
}

func TestRefusedBodies(t *testing.T) {
	r := newRig(t, nil)
	f, chat := r.refused, chatBody
	f(chats, ``, 400, shape, "body", "Field required")
	f(chats, `{`, 400, shape, "body", "JSON decode error")
	f(chats, `null`, 400, shape, "body", "valid dictionary")
	f(chats, `[]`, 400, shape, "body", "valid dictionary")
	f(chats, `""`, 400, shape, "body", "valid dictionary")
	f(chats, chat("")+"{}", 400, shape, "body", "more after the value")
	f(chats, `{"messages":"`+"\xff"+`"}`, 400, shape, "body", "not UTF-8")
	f(chats, chat(`,"user":"\ud800"`), 400, shape, "body", "surrogate")
	f(chats, chat(`,"user":"\udc00\ud800"`), 400, shape, "body", "surrogate")
	f(chats, chat(`,"x":`+strings.Repeat("[", 10001)+strings.Repeat("]", 10001)), 400, shape, "body", "deeper than")
	f(chats, chat(`,"max_tokens":5.5`), 400, shape, "body.max_tokens", "valid integer")
	f(chats, chat(`,"max_tokens":"0x5"`), 400, shape, "body.max_tokens", "valid integer")
	f(chats, chat(`,"stop_token_ids":[1,"x"]`), 400, shape, "body.stop_token_ids.1", "valid integer")
	f(chats, chat(`,"max_tokens":9223372036854775808`), 400, "BadRequestError", "max_tokens", "cannot be greater than max_model_len")
	f(chats, chat(`,"max_tokens":-9223372036854775809`), 400, shape, "body.max_tokens", "valid integer")
	f(chats, chat(`,"temperature":1e999`), 400, shape, "body.temperature", "valid number")
	f(chats, chat(`,"temperature":"hot"`), 400, shape, "body.temperature", "valid number")
	f(chats, chat(`,"stream":"maybe"`), 400, shape, "body.stream", "valid boolean")
	f(chats, `{}`, 400, shape, "body.messages", "Field required")
	f(chats, `{"Messages":[]}`, 400, shape, "body.messages", "Field required")
	f(chats, `{"messages":7}`, 400, shape, "body.messages", "valid list")
	f(chats, `{"messages":[]}`, 400, bad, "<nil>", "1 to 10000")
	f(chats, `{"messages":[`+strings.Repeat(`{},`, 10000)+`{}]}`, 400, bad, "<nil>", "got 10001")
	f(chats, `{"messages":[7]}`, 400, shape, "body.messages.0", "valid dictionary")
	f(chats, `{"messages":[{"content":"x"}]}`, 400, shape, "body.messages.0.role", "Field required")
	f(chats, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://169.254.169.254/"}}]}]}`, 400, bad, "<nil>", "reads text only")
	f(texts, `{}`, 400, bad, "prompt", "Either prompt")
	f(texts, `{"prompt":""}`, 400, bad, "prompt", "Either prompt")
	f(texts, `{"prompt":[]}`, 400, bad, "<nil>", "cannot be empty")
	f(texts, `{"prompt":[-1]}`, 400, shape, "body.prompt.0", "greater than or equal to 0")
	f(texts, `{"prompt":[99999]}`, 400, bad, "<nil>", "out of vocabulary")
	f(texts, `{"prompt":[`+strings.Repeat(`"a",`, 1024)+`"a"]}`, 400, bad, "prompt", "at most 1024")
	f(texts, `{"prompt":"`+strings.Repeat("a", 1<<20)+`"}`, 413, shape, "<nil>", "larger than")
	f(texts, `{"prompt":"`+strings.Repeat("a", 1<<19)+`"}`, 400, bad, "input_text", "characters")
	f(texts, `{"prompt":"`+strings.Repeat("a ", 2000)+`"}`, 400, bad, "input_tokens", "maximum context length is 512 tokens")

}

// many are n entries of a logit_bias.
func many(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"%d":1`, i))
	}
	return strings.Join(list, ",")
}

func TestRefusedValues(t *testing.T) {
	r := newRig(t, nil)
	f, chat := r.refused, chatBody
	text := func(fields string) string { return `{"prompt":"hi"` + fields + `}` }
	f(chats, chat(`,"model":"../x"`), 404, "NotFoundError", "model", "The model `../x` does not exist.")
	f(chats, chat(`,"n":0`), 400, bad, "<nil>", "at least 1, got 0")
	f(chats, chat(`,"n":1000000000`), 400, bad, "<nil>", "at most")
	f(chats, chat(`,"n":2,"temperature":0`), 400, bad, "<nil>", "n must be 1 when using greedy sampling, got 2.")
	f(chats, chat(`,"temperature":2.5`), 400, bad, "temperature", "temperature must be in [0, 2]")
	f(chats, chat(`,"temperature":-1`), 400, bad, "temperature", "temperature must be non-negative")
	f(chats, chat(`,"top_p":0`), 400, bad, "top_p", "top_p must be in (0, 1], got 0")
	f(chats, chat(`,"top_k":-2`), 400, bad, "<nil>", "top_k must be 0 (disable), or at least 1")
	f(chats, chat(`,"min_p":2`), 400, bad, "<nil>", "min_p must be in [0, 1]")
	f(chats, chat(`,"presence_penalty":3`), 400, bad, "<nil>", "must be in [-2, 2]")
	f(chats, chat(`,"frequency_penalty":-3`), 400, bad, "<nil>", "must be in [-2, 2]")
	f(chats, chat(`,"repetition_penalty":0`), 400, bad, "<nil>", "greater than zero")
	f(chats, chat(`,"max_tokens":0`), 400, bad, "max_tokens", "max_tokens must be at least 1, got 0")
	f(chats, chat(`,"max_tokens":-1`), 400, bad, "max_tokens", "max_tokens must be at least 1, got -1")
	f(chats, chat(`,"max_tokens":2147483648`), 400, bad, "max_tokens", "cannot be greater than max_model_len=512")
	f(chats, chat(`,"max_completion_tokens":513`), 400, bad, "max_completion_tokens", "max_completion_tokens=513 cannot be greater than")
	f(chats, chat(`,"min_tokens":9,"max_tokens":4`), 400, bad, "<nil>", "less than or equal to max_tokens=4, got 9")
	f(chats, chat(`,"min_tokens":-9`), 400, bad, "<nil>", "greater than or equal to 0")
	f(chats, chat(`,"stop":[""]`), 400, bad, "<nil>", "empty string")
	f(chats, chat(`,"stop":[`+strings.Repeat(`"x",`, 9999)+`"x"]`), 400, shape, "body.stop", "at most")
	f(chats, chat(`,"stop_token_ids":[-1]`), 400, bad, "stop_token_ids", "out of the vocabulary")
	f(chats, chat(`,"logit_bias":{"99999":1}`), 400, bad, "logit_bias", "out-of-vocab")
	f(chats, chat(`,"logit_bias":{"x":1}`), 400, bad, "logit_bias", "out-of-vocab")
	f(chats, chat(`,"allowed_token_ids":[]`), 400, bad, "allowed_token_ids", "empty")
	f(chats, chat(`,"bad_words":[""]`), 400, bad, "<nil>", "empty")
	f(chats, chat(`,"logprobs":true,"top_logprobs":21`), 400, bad, "logprobs", "max allowed: 20")
	f(chats, chat(`,"top_logprobs":2`), 400, bad, "top_logprobs", "must be set to true")
	f(chats, chat(`,"stream_options":{"include_usage":true}`), 400, bad, "stream_options", "Stream options can only be defined when `stream=True`.")
	f(chats, chat(`,"stream":true,"prompt_logprobs":1`), 400, bad, "prompt_logprobs", "not available when `stream=True`")
	f(chats, chat(`,"cache_salt":""`), 400, bad, "cache_salt", "non-empty")
	f(chats, chat(`,"tools":[]`), 400, bad, "tools", "must not be an empty array")
	f(chats, chat(`,"tool_choice":"required"`), 400, bad, "tool_choice", "`tools` must be set")
	f(chats, chat(`,"chat_template":"{{ 1 }}"`), 400, bad, "<nil>", "untrusted")
	f(chats, chat(`,"chat_template_kwargs":{"messages":[]}`), 400, bad, "chat_template_kwargs", "cannot set")
	f(texts, text(`,"suffix":"x"`), 400, bad, "suffix", "suffix is not currently supported")
	f(texts, text(`,"logprobs":21`), 400, bad, "logprobs", "max allowed: 20")
	f(texts, text(`,"logprobs":-1`), 400, bad, "logprobs", "which is greater than max allowed: 20")
	f(texts, text(`,"logprobs":-2`), 400, bad, "logprobs", "positive")
	f(texts, text(`,"prompt_logprobs":-2`), 400, bad, "prompt_logprobs", "positive")
	f(texts, text(`,"max_tokens":0`), 400, bad, "max_tokens", "at least 1")
	f(texts, text(`,"roundhouse_resume":{"id":"x","created":1,"token_ids":[99999]}`), 400, bad, "roundhouse_resume", "out of the vocabulary")
	f(texts, text(`,"n":2,"roundhouse_resume":{"id":"x","created":1,"token_ids":[]}`), 400, bad, "roundhouse_resume", "one choice")
	f(chats, chat(`,"logprob_token_ids":[`+strings.Repeat("1,", 128)+`1]`), 400, bad, "logprob_token_ids", "at most 128")
	f(chats, chat(`,"min_tokens":2147483648`), 400, bad, "<nil>", "less than or equal")
	f(chats, chat(`,"max_tokens":null,"min_tokens":9000`), 400, bad, "<nil>", "less than or equal")
	f(chats, chat(`,"logit_bias":{`+many(1025)+`}`), 400, bad, "logit_bias", "at most 1024")
	f(chats, chat(`,"stop_token_ids":[`+strings.Repeat("1,", 1024)+`1]`), 400, bad, "stop_token_ids", "at most")
	f(chats, chat(`,"bad_words":[`+strings.Repeat(`"x",`, 1024)+`"x"]`), 400, bad, "bad_words", "at most")
	f(chats, chat(`,"cache_salt":"`+strings.Repeat("s", 513)+`"`), 400, bad, "cache_salt", "at most 128")
	f(chats, chat(`,"user":"`+strings.Repeat("u", 1<<19)+`"`), 400, bad, "user", "at most 512")
	f(chats, chat(`,"metadata":{"a":"`+strings.Repeat("m", 1<<19)+`"}`), 400, bad, "metadata", "at most 16384")
	f(chats, chat(`,"model":"`+strings.Repeat("m", 1<<19)+`"`), 404, "NotFoundError", "model", "does not exist")
	f(chats, chat(`,"response_format":{"type":"structural_tag"}`), 400, bad, "response_format", "Invalid response_format structural_tag")
	f(chats, chat(`,"response_format":{"type":"json_schema"}`), 400, bad, "response_format", "must be provided")
	f(chats, chat(`,"structured_outputs":{"regex":"a","choice":["b"]}`), 400, bad, "<nil>", "only use one kind")
	f(chats, chat(`,"structured_outputs":{"structural_tag":{}}`), 400, bad, "structured_outputs", "structural_tag")
	f(chats, chat(`,"mm_processor_kwargs":{"a":1}`), 400, bad, "mm_processor_kwargs", "not taken")
	f(chats, chat(`,"thinking_token_budget":9`), 400, bad, "<nil>", "--reasoning-parser")
	f(chats, chat(`,"reasoning_effort":"hard"`), 400, shape, "body.reasoning_effort", "'none', 'minimal'")
	f(chats, chat(`,"repetition_detection":{"max_pattern_size":4,"min_count":1}`), 400, bad, "<nil>", "min_count must be >= 2")
	for _, part := range []string{`"type":"audio_url","audio_url":{"url":"http://127.0.0.1/"}`, `"type":"video_url"`, `"type":"input_audio"`} {
		f(chats, `{"messages":[{"role":"user","content":[{`+part+`}]}]}`, 400, bad, "<nil>", "reads text only")
	}
	f(chats, `{"messages":[{"role":"user","content":[{"type":"file","file":{}}]}]}`, 400, bad, "type", "reads text only")
	f(texts, `{"prompt":[`+strings.Repeat("1,", 600)+`1]}`, 400, bad, "input_tokens", "contains 601 input tokens")
	f(texts, `{"prompt":"a","prompt_embeds":"x"}`, 400, bad, "prompt_embeds", "--enable-prompt-embeds")

	// And it still answers.
	r.ask(chats, object{"messages": []object{{"role": "user", "content": "hi"}}, "max_tokens": 3, "presence_penalty": 2, "frequency_penalty": -2, "model": "alias"})
}

func TestRoutes(t *testing.T) {
	r := newRig(t, func(s *server.Config, _ *worker.Config) { s.APIKeys, s.DevMode = []string{"secret"}, true })
	f := func(method, path, key string, code int, want string) {
		t.Helper()
		req, _ := http.NewRequest(method, r.url+path, strings.NewReader(`{"prompt":"hello","tokens":[1,2]}`))
		req.Header.Set("Content-Type", "application/json")
		if key != "" {
			req.Header.Set("Authorization", key)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != code || !strings.Contains(string(body), want) {
			t.Errorf("%s %s: %d %s; want %d %q", method, path, resp.StatusCode, body, code, want)
		}
	}
	f("GET", "/health", "", 200, "")
	f("GET", "/ping", "", 200, "")
	f("POST", "/ping", "", 200, "")
	f("GET", "/version", "", 200, `{"version":"v"}`)
	f("GET", "/load", "", 200, `{"server_load":0}`)
	f("GET", "/v1/models", "", 401, `{"error":"Unauthorized"}`)
	f("GET", "/v1/models", "Bearer wrong", 401, "Unauthorized")
	f("GET", "/v1/models", "Bearer secret", 200, `"max_model_len":512`)
	f("GET", "/v1/models/alias", "Bearer secret", 200, `"id":"alias"`)
	f("GET", "/v1/models/none", "Bearer secret", 404, "The model `none` does not exist.")
	f("POST", "/tokenize", "", 200, `"max_model_len":512`)
	f("POST", "/detokenize", "", 200, `"prompt":`)
	f("GET", "/nothing", "", 404, "Not Found")
	f("GET", "/v1/completions", "Bearer secret", 405, "Method Not Allowed")
	f("POST", "/v1/completions", "Bearer secret", 200, "text_completion")
	f("POST", "/reset_prefix_cache", "", 200, `"success":true`)
	f("POST", "/sleep", "", 200, "")
	f("GET", "/is_sleeping", "", 200, "true")
	f("POST", "/wake_up", "", 200, "")
	f("GET", "/is_sleeping", "", 200, "false")
	f("GET", "/server_info", "", 200, "max_num_seqs")
	f("POST", "/abort_requests", "", 401, "Unauthorized")
	f("POST", "/abort_requests", "Bearer secret", 200, "")
	f("POST", "/pause?mode=later", "", 400, "mode must be abort, wait or keep")
	f("POST", "/invocations", "", 200, "text_completion")
	f("POST", "/v1/completions/render", "Bearer secret", 403, "PermissionDeniedError")
	f("POST", "/collective_rpc", "", 404, `{"detail":"Not Found"}`)
	f("POST", "/v1/embeddings", "Bearer secret", 404, `{"detail":"Not Found"}`)
	f("POST", "/v1/completions/", "Bearer secret", 200, "text_completion")
	f("GET", "/metrics/", "", 200, "vllm:num_requests_running")
	f("GET", "/openapi.json", "", 200, `"/v1/responses/{response_id}/cancel":{"post":`)
	f("GET", "/docs", "", 200, "<code>POST /v1/chat/completions</code>")
	f("GET", "/kv_event_sources", "", 200, "{}")
	f("POST", "/v1/messages", "Bearer wrong", 401, `"type":"authentication_error"`)
	f("POST", "/v1/load_lora_adapter", "Bearer secret", 404, "--enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True")
	f("POST", "/v1/responses/resp_1/cancel", "Bearer secret", 404, "Response with id 'resp_1' not found.")
	f("DELETE", "/v1/responses/resp_1", "Bearer secret", 404, "Response with id 'resp_1' not found.")
	f("POST", "/v1/completions", "Bearer secret", 200, "text_completion")
}

func TestContentType(t *testing.T) {
	r := newRig(t, nil)
	resp, err := http.Post(r.url+"/v1/completions", "text/plain", strings.NewReader(`{"prompt":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != 400 || !strings.Contains(string(body), "Only 'application/json' is allowed") {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
}

// TestMetricNames holds vLLM's own list of names, in both of its forms.
func TestMetricNames(t *testing.T) {
	r := newRig(t, nil)
	r.ask("/v1/completions", object{"prompt": "one two three", "max_tokens": 9, "ignore_eos": true})
	_, text := r.get("/metrics")
	want := []string{
		"num_requests_running", "num_requests_waiting", "num_requests_waiting_by_reason", "kv_cache_usage_perc",
		"prefix_cache_queries_total", "prefix_cache_hits_total", "num_preemptions_total", "prompt_tokens_total", "generation_tokens_total",
		"iteration_tokens_total_sum", "cache_config_info", "request_success_total", "mm_cache_queries_total", "mm_cache_hits_total",
		"gpu_cache_usage_perc", "cpu_cache_usage_perc", "num_requests_swapped", "time_per_output_token_seconds_sum", "lora_requests_info",
	}
	for _, h := range []string{
		"request_prompt_tokens", "request_generation_tokens", "request_params_n", "request_params_max_tokens", "time_to_first_token_seconds",
		"inter_token_latency_seconds", "e2e_request_latency_seconds", "request_queue_time_seconds", "request_inference_time_seconds",
		"request_prefill_time_seconds", "request_decode_time_seconds", "iteration_tokens_total",
	} {
		want = append(want, h+"_sum", h+"_bucket", h+"_count")
	}
	for _, name := range want {
		if !strings.Contains(text, "\nvllm:"+name+"{") {
			t.Errorf("there is no vllm:%s", name)
		}
	}
	for _, name := range []string{"process_resident_memory_bytes", "process_cpu_seconds_total", "process_start_time_seconds", "process_open_fds"} {
		_, after, _ := strings.Cut(text, "\n"+name+" ")
		value, _, _ := strings.Cut(after, "\n")
		if v, err := strconv.ParseFloat(value, 64); err != nil || v < 0 || v == 0 && name != "process_cpu_seconds_total" {
			t.Errorf("%s is %q", name, value)
		}
	}
	if !strings.Contains(text, `vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="device"} 0.0`) {
		t.Error("cached tokens by source are missing")
	}
	// Scripts in the field wait for exactly this text in the second column.
	for _, line := range []string{
		`vllm:num_requests_running{engine="0",model_name="m"} 0.0`, `vllm:num_requests_waiting{engine="0",model_name="m"} 0.0`,
		`vllm:generation_tokens_total{engine="0",model_name="m"} 9.0`, `vllm:request_success_total{engine="0",model_name="m",finished_reason="length"} 1.0`,
		`vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 1.0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no line %s", line)
		}
	}
}

// TestHangUp holds that a client that leaves takes its generation with it, which
// would go on for most of a minute.
func TestHangUp(t *testing.T) {
	r := newRig(t, func(_ *server.Config, w *worker.Config) { w.Pace = 100 * time.Millisecond })
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, "POST", r.url+"/v1/completions", strings.NewReader(`{"prompt":"a","max_tokens":500,"stream":true,"ignore_eos":true}`))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var b [64]byte
	if _, err := resp.Body.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = resp.Body.Close()
	if !r.engine.WaitIdle(context.Background()) {
		t.Fatal("the engine stopped")
	}
	if n := r.engine.Stats().Finished[worker.FinishAbort]; n != 1 {
		t.Fatalf("%d requests were aborted; want 1", n)
	}
}

// TestStatusStream holds what the front door reads.
func TestStatusStream(t *testing.T) {
	r := newRig(t, nil)
	release := r.model.Hold()
	defer release()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		req, _ := http.NewRequest("POST", r.url+"/v1/completions", strings.NewReader(`{"prompt":"one two three four five six seven","max_tokens":5,"ignore_eos":true}`))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set(api.HeaderDoor, "door-1")
		req.Header.Set(api.HeaderSeq, "1")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if !strings.Contains(string(body), `"cached_tokens":0`) {
			t.Errorf("a door is to be told of cached tokens: %s", body)
		}
	}()
	resp, err := http.Get(r.url + api.StatusPath)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	d := json.NewDecoder(resp.Body)
	next := func(until func(api.Status) bool) api.Status {
		t.Helper()
		for {
			var s api.Status
			if err := d.Decode(&s); err != nil {
				t.Fatal(err)
			}
			if s.Protocol != api.StatusProtocol || s.CapacityTokens != 4096 || s.MaxModelLen != 512 {
				t.Fatalf("status %+v", s)
			}
			if until(s) {
				return s
			}
		}
	}
	release()
	s := next(func(s api.Status) bool { return s.GeneratedTokens == 5 && s.Running == 0 })
	if door := s.Doors["door-1"]; door.Through != 1 || len(door.Beyond) != 0 || door.ResidentTokens != 0 || s.UsedTokens != 0 || s.CachedTokens == 0 {
		t.Fatalf("after the request: %+v", s)
	}
	<-answered
}

func TestChoicesAndPrompts(t *testing.T) {
	r := newRig(t, nil)
	body := object{"prompt": []string{"one two", "three four five"}, "n": 2, "max_tokens": 6, "temperature": 1, "seed": 4, "echo": true, "logprobs": 2, "ignore_eos": true}
	answer := r.ask("/v1/completions", body)
	choices := answer["choices"].([]any)
	if len(choices) != 4 {
		t.Fatalf("%d choices; want 4", len(choices))
	}
	if u := answer["usage"].(object); u["completion_tokens"].(float64) != 24 {
		t.Fatalf("usage %v", u)
	}
	texts := map[string]bool{}
	for i, c := range choices {
		c := c.(object)
		text := c["text"].(string)
		texts[text] = true
		want := []string{"one two", "three four five"}[i/2]
		if c["index"].(float64) != float64(i) || !strings.HasPrefix(text, want) || c["finish_reason"] != "length" {
			t.Errorf("choice %d: %v", i, c)
		}
		l := c["logprobs"].(object)
		if l["token_logprobs"].([]any)[0] != nil || len(l["tokens"].([]any)) != len(l["top_logprobs"].([]any)) {
			t.Errorf("choice %d: logprobs %v", i, l)
		}
	}
	if len(texts) != 4 {
		t.Errorf("the choices are not different: %v", texts)
	}
	// Each choice is what its stream says.
	said := make([]string, 4)
	for _, e := range r.stream("/v1/completions", body) {
		if e == nil {
			continue
		}
		for _, c := range e["choices"].([]any) {
			c := c.(object)
			said[int(c["index"].(float64))] += c["text"].(string)
		}
	}
	for i, c := range choices {
		if said[i] != c.(object)["text"] {
			t.Errorf("choice %d: streamed %q; answered %q", i, said[i], c.(object)["text"])
		}
	}
}

func TestPromptLogprobs(t *testing.T) {
	r := newRig(t, nil)
	prompt := "one two three four five six seven eight nine ten"
	n := len(r.tok.Encode(prompt, tokenizerOptions))
	answer := r.ask("/v1/completions", object{"prompt": prompt, "max_tokens": 0, "echo": true, "logprobs": 1, "prompt_logprobs": 2})
	c := answer["choices"].([]any)[0].(object)
	if c["text"] != prompt || answer["usage"].(object)["completion_tokens"].(float64) != 0 {
		t.Fatalf("echo alone: %v", answer)
	}
	rows := c["prompt_logprobs"].([]any)
	if len(rows) != n || rows[0] != nil {
		t.Fatalf("%d rows; want %d, the first null", len(rows), n)
	}
	for i, row := range rows[1:] {
		if k := len(row.(object)); k != 2 && k != 3 {
			t.Fatalf("row %d has %d candidates: %v", i+1, k, row)
		}
	}
	// The prompt's logprobs are those of sampling it.
	ids := r.tok.Encode(prompt, tokenizerOptions)
	l := c["logprobs"].(object)["token_logprobs"].([]any)
	forced := r.ask("/v1/completions", object{"prompt": ids[:n-1], "max_tokens": 1, "logprobs": 0, "allowed_token_ids": ids[n-1:]})
	again := forced["choices"].([]any)[0].(object)["logprobs"].(object)["token_logprobs"].([]any)[0]
	if fmt.Sprint(l[n-1]) != fmt.Sprint(again) {
		t.Fatalf("logprob of the last prompt token %v; sampled %v", l[n-1], again)
	}
}

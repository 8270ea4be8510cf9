package server_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"roundhouse/worker"
	"roundhouse/worker/server"
	"roundhouse/worker/tokenizer"
)

// header posts a body with a header and returns the answer's headers and body.
func (r *rig) header(path, body, name, v string) (int, http.Header, string) {
	r.t.Helper()
	req, _ := http.NewRequest("POST", r.url+path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(name, v)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(data)
}

func TestHeaders(t *testing.T) {
	r := newRig(t, func(s *server.Config, _ *worker.Config) { s.RequestIDHeaders, s.LoadTracking = true, true })
	body := `{"prompt":"a b","max_tokens":2}`
	_, h, text := r.header(texts, body, "X-Request-Id", "my-id_7")
	if h.Get("X-Request-Id") != "my-id_7" || !strings.Contains(text, `"id":"cmpl-my-id_7"`) {
		t.Errorf("request id: %v %s", h, text)
	}
	_, h, text = r.header(texts, body, "X-Request-Id", "http://169.254.169.254/?x")
	if h.Get("X-Request-Id") != "" || strings.Contains(text, "169.254") {
		t.Errorf("a request id that is none: %v %s", h, text)
	}
	if _, h, _ = r.header(texts, body, "endpoint-load-metrics-format", "TEXT"); !strings.HasPrefix(h.Get("Endpoint-Load-Metrics"), "TEXT named_metrics.kv_cache_usage_perc=") {
		t.Errorf("load in text: %v", h)
	}
	if _, h, _ = r.header(texts, body, "endpoint-load-metrics-format", "JSON"); !strings.Contains(h.Get("Endpoint-Load-Metrics"), `"num_requests_waiting":0`) {
		t.Errorf("load in JSON: %v", h)
	}
	if code, _, text := r.header(texts, body, "X-Vllm-Priority", "high"); code != 400 {
		t.Errorf("priority: %d %s", code, text)
	}
	if code, text := r.get("/load"); code != 200 || text != `{"server_load":0}` {
		t.Errorf("load: %d %s", code, text)
	}
}

func TestUsageInEveryEvent(t *testing.T) {
	r := newRig(t, func(s *server.Config, _ *worker.Config) { s.PromptTokensDetails = true })
	body := object{"messages": []object{{"role": "user", "content": "one two three four five six seven eight"}}, "max_tokens": 5, "ignore_eos": true,
		"stream_options": object{"include_usage": true, "continuous_usage_stats": true}, "n": 2, "temperature": 1}
	r.stream(chats, body)
	last, finished := map[any]float64{}, 0
	events := r.stream(chats, body)
	for _, e := range events[:len(events)-1] {
		u := e["usage"].(object)
		n := u["completion_tokens"].(float64)
		for _, c := range e["choices"].([]any) {
			i := c.(object)["index"]
			had, opened := last[i]
			if n < had || !opened && n != 0 || u["total_tokens"].(float64) != n+u["prompt_tokens"].(float64) {
				t.Fatalf("choice %v: usage %v after %v", i, u, had)
			}
			last[i] = n
			if c.(object)["finish_reason"] == "length" {
				finished++
			}
		}
	}
	u := events[len(events)-2]["usage"].(object)
	if last[0.0] != 5 || last[1.0] != 5 || u["completion_tokens"] != 10.0 || finished != 2 || u["prompt_tokens_details"].(object)["cached_tokens"].(float64) == 0 {
		t.Fatalf("%v tokens, %d ends, %v", last, finished, u)
	}
}

// TestPanic holds that a fault in one request ends that request.
func TestPanic(t *testing.T) {
	r := newRig(t, func(s *server.Config, _ *worker.Config) {
		render := s.Template
		s.Template = func(vars map[string]any) ([]tokenizer.Segment, error) {
			if vars["trap"] != nil {
				panic("a fault")
			}
			return render(vars)
		}
	})
	code, data := r.post(chats, chatBody(`,"chat_template_kwargs":{"trap":true}`))
	if code != 500 || !strings.Contains(string(data), "InternalServerError") || strings.Contains(string(data), "a fault") {
		t.Fatalf("%d %s", code, data)
	}
	r.ask(chats, object{"messages": []object{{"role": "user", "content": "hi"}}, "max_tokens": 2})
}

// TestEngineDies holds what clients and health checks see then.
func TestEngineDies(t *testing.T) {
	r := newRig(t, nil)
	r.model.Fail(fmt.Errorf("device lost at 0xdeadbeef"))
	code, data := r.post(texts, `{"prompt":"a"}`)
	if code != 500 || strings.Contains(string(data), "0xdeadbeef") {
		t.Fatalf("%d %s", code, data)
	}
	<-r.engine.Done()
	if code, _ := r.get("/health"); code != 503 {
		t.Fatalf("health %d", code)
	}
	if code, data := r.post(texts, `{"prompt":"a"}`); code != 500 {
		t.Fatalf("after the end: %d %s", code, data)
	}
}

func TestNothingOfThePromptIsTold(t *testing.T) {
	r := newRig(t, nil)
	const canary = "canary-31337"
	for _, body := range []string{
		chatBody(`,"user":"` + canary + `","temperature":9`), `{"prompt":"` + canary + `","max_tokens":99999}`, `{"prompt":["` + canary + `"],"logit_bias":{"1":"x"}}`,
	} {
		path := chats
		if strings.HasPrefix(body, `{"prompt"`) {
			path = texts
		}
		if code, data := r.post(path, body); code != 400 || strings.Contains(string(data), canary) {
			t.Errorf("%d %s", code, data)
		}
	}
	if _, text := r.get("/metrics"); strings.Contains(text, canary) {
		t.Error("a prompt is in the metrics")
	}
}

// FuzzBody sends whatever it likes and wants an answer in the right shape.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"prompt":"a","max_tokens":2}`, `{"prompt":[1,2],"logprobs":1,"echo":true,"max_tokens":1}`, `{"prompt":"\ud83d\ude00","stop":["a"],"max_tokens":3}`,
		`{"prompt":"a","n":2,"temperature":1,"max_tokens":2,"logit_bias":{"5":-1}}`, `{"prompt":[[1],[2]],"max_tokens":1,"min_tokens":1}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		code, data := newRig(t, nil).post(texts, body)
		if code != 200 && !strings.HasPrefix(string(data), `{"error":{"message":`) {
			t.Fatalf("%d %s", code, data)
		}
	})
}

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"roundhouse/worker"
	"roundhouse/worker/api"
	"roundhouse/worker/server"
	"roundhouse/worker/workertest"
)

// newAdaptedRig is a rig with two slots for adapters, which lie anywhere but at
// "nowhere", and whose steps take no less than pace.
func newAdaptedRig(t *testing.T, pace time.Duration) *rig {
	t.Helper()
	return newRig(t, func(sc *server.Config, wc *worker.Config) {
		m := wc.Exec.(*workertest.Model)
		m.Adapters = make([]uint64, 2)
		wc.Adapters = worker.AdapterSlots{Count: 2, Load: func(slot int, path string) error {
			if path == "nowhere" {
				return fmt.Errorf("there is no such folder")
			}
			m.Adapters[slot] = uint64(len(path)) * 0x9e3779b97f4a7c15
			return nil
		}}
		sc.LoadAdapters, wc.Pace = true, pace
	})
}

// TestAdapterRoutes loads, lists, uses and unloads adapters with vLLM's words.
func TestAdapterRoutes(t *testing.T) {
	r := newAdaptedRig(t, 0)
	f := func(path, body string, code int, want string) {
		t.Helper()
		got, answer := r.post(path, body)
		if got != code || !strings.Contains(string(answer), want) {
			t.Errorf("%s %s: %d %s; want %d with %s", path, body, got, answer, code, want)
		}
	}
	const load, unload = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
	f(load, `{"lora_name":"sql","lora_path":"/adapters/sql"}`, 200, "Success: LoRA adapter 'sql' added successfully.")
	f(load, `{"lora_name":"sql","lora_path":"/adapters/other"}`, 400, "The lora adapter 'sql' has already been loaded.")
	f(load, `{"lora_name":"sql","lora_path":"/adapters/new sql","load_inplace":true}`, 200, "added successfully")
	f(load, `{"lora_name":"chat","lora_path":"/adapters/chat","base_model_name":"org/base"}`, 200, "added successfully")
	f(load, `{"lora_name":"third","lora_path":"/adapters/third"}`, 400, "all 2 slots for adapters are taken")
	f(load, `{"lora_name":"third"}`, 400, `"type":"InvalidUserInput"`)
	f(load, `{"lora_name":"a,b","lora_path":"x"}`, 400, "without commas")
	f(load, `{"lora_name":"alias","lora_path":"x"}`, 400, "the name of the model itself")
	f(load, `{"lora_name":"third","lora_path":"x","is_3d_lora_weight":true}`, 400, "is_3d_lora_weight")
	f(load, `[]`, 400, "")
	f(unload, `{"lora_name":"third"}`, 404, "The lora adapter 'third' cannot be found.")
	f(unload, `{}`, 400, "'lora_name' needs to be provided")

	type card struct{ ID, Root, Parent string }
	var list struct{ Data []card }
	if _, body := r.get("/v1/models"); json.Unmarshal([]byte(body), &list) != nil {
		t.Fatal(body)
	}
	want := []card{{"m", "root", ""}, {"alias", "root", ""}, {"sql", "/adapters/new sql", "m"}, {"chat", "/adapters/chat", "org/base"}}
	if fmt.Sprint(list.Data) != fmt.Sprint(want) {
		t.Errorf("/v1/models has %v; want %v", list.Data, want)
	}
	if code, body := r.get("/v1/models/chat"); code != 200 || !strings.Contains(body, `"parent":"org/base"`) {
		t.Errorf("/v1/models/chat: %d %s", code, body)
	}

	answers := map[string]string{}
	for _, model := range []string{"m", "sql", "chat"} {
		code, body := r.post("/v1/completions", object{"model": model, "prompt": "one two three", "temperature": 0, "max_tokens": 8})
		var a struct {
			Model   string
			Choices []struct{ Text string }
		}
		if code != 200 || json.Unmarshal(body, &a) != nil || a.Model != model {
			t.Fatalf("%s: %d %s", model, code, body)
		}
		if other, ok := answers[a.Choices[0].Text]; ok {
			t.Errorf("%s and %s give the same answer %q", model, other, a.Choices[0].Text)
		}
		answers[a.Choices[0].Text] = model
	}
	f("/v1/chat/completions", `{"model":"chat","messages":[{"role":"user","content":"hi"}],"max_tokens":3}`, 200, `"model":"chat"`)
	f("/v1/messages", `{"model":"sql","messages":[{"role":"user","content":"hi"}],"max_tokens":3}`, 200, `"model":"sql"`)
	f("/tokenize", `{"model":"sql","prompt":"hi"}`, 200, `"count"`)

	f(unload, `{"lora_name":"sql"}`, 200, "Success: LoRA adapter 'sql' removed successfully.")
	f("/v1/completions", `{"model":"sql","prompt":"a"}`, 404, "The model `sql` does not exist.")
	f(load, `{"lora_name":"third","lora_path":"nowhere"}`, 400, "the adapter 'third' cannot be loaded: there is no such folder")
}

// TestAdapterMetric: the metric names the adapters that requests run on. The
// request would run for most of a minute.
func TestAdapterMetric(t *testing.T) {
	r := newAdaptedRig(t, 100*time.Millisecond)
	r.post("/v1/load_lora_adapter", `{"lora_name":"sql","lora_path":"x"}`)
	if _, body := r.get("/metrics"); !strings.Contains(body, `vllm:lora_requests_info{max_lora="2",waiting_lora_adapters="",running_lora_adapters=""}`) {
		t.Errorf("no lora_requests_info of an idle worker in:\n%s", body)
	}
	resp, err := http.Post(r.url+"/v1/completions", "application/json", strings.NewReader(`{"model":"sql","prompt":"a","max_tokens":400,"ignore_eos":true,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ran := false
	_ = r.engine.Watch(ctx, func(api.Status) error {
		ran = ran || r.engine.Stats().RunningAdapters == "sql"
		if ran {
			stop()
		}
		return nil
	})
	if !ran {
		t.Error("while a request runs on sql, no metric says so")
	}
}

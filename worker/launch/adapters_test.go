package launch

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"roundhouse/test/adapter"
)

// TestServeAdapters serves the demonstration model with adapters, from the start
// on and loaded later: each has answers of its own, the same alone as beside the
// others, on a plain and on a quantised model, and after a sleep.
func TestServeAdapters(t *testing.T) {
	one, two := adapter.Write(t, 1, 8, 2), adapter.Write(t, 2, 3, 2)
	env := func(name string) string {
		return map[string]string{"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True", "VLLM_SERVER_DEV_MODE": "1"}[name]
	}
	for _, format := range []string{"none", "sym_int4"} {
		o, err := ParseServe([]string{"--quantization", format, "--served-model-name", "base", "--enable-lora", "--max-loras", "2", "--lora-modules", "one=" + one}, env)
		if err != nil {
			t.Fatal(err)
		}
		hs := serveOpen(t, o, quiet)
		say := func(model string) string {
			var a struct{ Choices []struct{ Text string } }
			body := map[string]any{"model": model, "prompt": "The roundhouse is", "temperature": 0, "max_tokens": 24, "ignore_eos": true}
			if err := postJSON(hs.URL+"/v1/completions", body, &a); err != nil {
				t.Error(err)
				return ""
			}
			return a.Choices[0].Text
		}
		post := func(path, body string) {
			t.Helper()
			resp, err := http.Post(hs.URL+path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: %s", path, resp.Status)
			}
		}
		post("/v1/load_lora_adapter", fmt.Sprintf(`{"lora_name":"two","lora_path":%q}`, two))
		names := []string{"base", "one", "two"}
		var alone []string
		for _, name := range names {
			alone = append(alone, say(name))
		}
		if slices.Contains(alone[1:], alone[0]) || alone[1] == alone[2] {
			t.Errorf("%s: the adapters make no difference: %q", format, alone)
		}
		together := make([]string, 12)
		done := make(chan struct{})
		for i := range together {
			go func() { together[i] = say(names[i%3]); done <- struct{}{} }()
		}
		for range together {
			<-done
		}
		for i, got := range together {
			if got != alone[i%3] {
				t.Errorf("%s: %s beside others says %q; alone %q", format, names[i%3], got, alone[i%3])
			}
		}
		post("/sleep?level=1", "")
		post("/wake_up", "")
		for i, name := range names {
			if got := say(name); got != alone[i] {
				t.Errorf("%s: after a sleep %s says %q; before %q", format, name, got, alone[i])
			}
		}
	}
}

// TestAdapterStarts has starts with adapters that stop, and why.
func TestAdapterStarts(t *testing.T) {
	wide := adapter.Write(t, 3, 20, 1)
	f := func(want string, args ...string) {
		t.Helper()
		o, err := ParseServe(append([]string{"--enable-lora"}, args...), noEnv)
		if err != nil {
			t.Fatal(err)
		}
		w, err := Open(o, quiet)
		if err == nil {
			_ = w.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v; want an error with %q", args, err, want)
		}
	}
	f("--lora-modules a: org/nowhere is neither a folder nor in the local cache", "--lora-modules", "a=org/nowhere")
	f("adapter_config.json", "--lora-modules", "a="+t.TempDir())
	f("rank 20; there is room for rank 16 (--max-lora-rank)", "--lora-modules", "a="+wide)
	o, err := ParseServe([]string{"--enable-lora", "--max-lora-rank", "32", "--lora-modules", "a=" + wide, fmt.Sprintf(`{"name":"b","path":%q,"base_model_name":"org/base"}`, wide)}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(o, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

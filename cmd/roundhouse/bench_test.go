package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"roundhouse/test/leaks"
)

// service answers as a small model would: a token for each word.
func service(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":[{"id":"tiny","max_model_len":400}]}`)
	})
	mux.HandleFunc("POST /tokenize", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Prompt string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, `{"count":%d}`, len(strings.Fields(body.Prompt)))
	})
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model, Prompt string
			MaxTokens     int  `json:"max_tokens"`
			IgnoreEOS     bool `json:"ignore_eos"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if body.Model != "tiny" || !body.IgnoreEOS || r.Header.Get("Authorization") != "Bearer key" || r.Header.Get("X-Team") != "a" {
			t.Errorf("asked %+v with %v", body, r.Header)
		}
		for range body.MaxTokens {
			fmt.Fprint(w, `data: {"choices":[{"text":" x"}]}`+"\n\n")
		}
		fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`+"\n\ndata: [DONE]\n\n", len(strings.Fields(body.Prompt)), body.MaxTokens)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// call runs the program and returns its exit code and what it printed.
func call(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	var out, err bytes.Buffer
	c := &console{out: &out, err: &err, env: func(name string) (string, bool) { return "key", name == "OPENAI_API_KEY" }}
	code := c.run(root(c), args)
	return code, out.String(), err.String()
}

// The command writes vLLM's result file, the report, and compares two of them.
func TestBench(t *testing.T) {
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		leaks.None(t)
	})
	server, dir := service(t), t.TempDir()
	for _, name := range []string{"a.json", "b.json"} {
		code, out, errs := call(t, "bench", "--base-url", server.URL, "--num_prompt=30", "--random-input-len", "12", "--random_output_len=5",
			"--header", "X-Team=a", "--goodput", "ttft:5000", "e2el:9000", "--metadata", "card=none", "place=here", "--runs", "2",
			"--save-result", "--save-detailed", "--append-result", "--result-dir", dir, "--result-filename", name, "--report", filepath.Join(dir, "r.html"), "--disable-tqdm")
		if code != 0 || !strings.Contains(out, "Successful requests:                     30") || !strings.Contains(out, "over 2 runs") {
			t.Fatalf("code %d\n%s\n%s", code, out, errs)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "a.json"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	var r struct {
		Card       string
		Completed  int
		Input      int       `json:"total_input_tokens"`
		Output     int       `json:"total_output_tokens"`
		Goodput    *float64  `json:"request_goodput"`
		TTFTs      []float64 `json:"ttfts"`
		Roundhouse struct{ Verdict struct{ Notes []string } }
	}
	if err := json.Unmarshal([]byte(lines[0]), &r); err != nil || len(lines) != 2 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if r.Card != "none" || r.Completed != 30 || r.Input != 360 || r.Output != 150 || r.Goodput == nil || len(r.TTFTs) != 30 {
		t.Errorf("%+v", r)
	}
	page, err := os.ReadFile(filepath.Join(dir, "r.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "Time to the first token against", "default-src 'none'", "requests/s and"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the report has no %q", want)
		}
	}
	if bytes.Contains(page, []byte("<script")) || bytes.Contains(page, []byte("http://www")) {
		t.Error("the report has a script, or asks for something")
	}
	code, out, _ := call(t, "bench", "--compare", filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json"))
	if code != 0 || !strings.Contains(out, "median_ttft_ms") || !strings.Contains(out, "2 runs") {
		t.Errorf("code %d\n%s", code, out)
	}
}

// A sweep ends with a rate, or says why no rate passed.
func TestBenchSweep(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	server := service(t)
	code, out, errs := call(t, "bench", "--base-url", server.URL, "--header", "X-Team=a", "--sweep", "--sweep-requests", "3", "--sweep-time", "1ms",
		"--goodput", "ttft:0.000001", "--random-input-len", "5", "--random-output-len", "2", "--disable-tqdm")
	why := strings.Contains(out, "met the goal") || strings.Contains(out, "the client was late") // as on a busy machine
	if code != 0 || !strings.Contains(out, "no rate passed") || !why {
		t.Errorf("code %d\n%s\n%s", code, out, errs)
	}
}

// vLLM's command lines are read as argparse reads them.
func TestLikeArgparse(t *testing.T) {
	f := func(args, want string) {
		t.Helper()
		s := pflag.NewFlagSet("bench", pflag.ContinueOnError)
		(&benchFlags{}).add(s)
		got, err := likeArgparse(s, strings.Fields(args))
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("%s\ngives %s\nwant  %s", args, text, want)
		}
		if err == nil {
			if err := s.Parse(got); err != nil {
				t.Errorf("%s: %v", args, err)
			}
		}
	}
	f("--model m --dataset-name random --served-model-name s --random-input-len=1024 --random-output-len=512 --ignore-eos --num-prompt 10 --trust_remote_code --request-rate inf --backend vllm --port=8000",
		"--model m --dataset-name random --served-model-name s --random-input-len=1024 --random-output-len=512 --ignore-eos --num-prompts 10 --trust-remote-code --request-rate inf --backend vllm --port=8000")
	f("--goodput ttft:500 tpot:50 --save-result", "--goodput=ttft:500 --goodput=tpot:50 --save-result")
	f("--max_conc 4", "--max-concurrency 4")
	f("--random", "--random is short for several flags: --random-input-len, --random-output-len, --random-range-ratio, --random-prefix-len")
	f("--frobnicate 1", "there is no flag --frobnicate")
}

// A mistake of the command line is told with the flag, what was found and what is wanted.
func TestBenchUsage(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		code, _, errs := call(t, append([]string{"bench"}, args...)...)
		if code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%v: code %d, %q; want %q", args, code, errs, want)
		}
	}
	f(`--goodput "foo": want ttft:MS`, "--goodput", "foo")
	f(`--request-rate is 0`, "--request-rate", "0")
	f(`custom wants its file`, "--dataset-name", "custom")
	f(`--dataset-path is for custom`, "--dataset-path", "x")
	f(`--scenario "x": want low`, "--scenario", "x")
	f(`--slo "x": want chat`, "--slo", "x")
	f(`--percentile-metrics`, "--percentile-metrics", "latency", "--base-url", service(t).URL)
	f(`two result files, not 1`, "--compare", "a")
	f(`"stray" is no flag`, "stray")
	f(`both say when to end`, "--duration", "5s", "--num-prompts", "3")
	if code, out, _ := call(t, "bench", "--help"); code != 0 || !strings.Contains(out, "--sweep-requests") {
		t.Errorf("--help: code %d, %q", code, out)
	}
	if code, _, errs := call(t, "bench", "--port", "1"); code != exitUnreachable || !strings.Contains(errs, "nothing answers at http://127.0.0.1:1") {
		t.Errorf("code %d, %q", code, errs)
	}
	http.DefaultClient.CloseIdleConnections()
}

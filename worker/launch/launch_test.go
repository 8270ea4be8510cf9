package launch

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"roundhouse/kernels"
	"roundhouse/worker/demo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func noEnv(string) string { return "" }

func TestFlags(t *testing.T) {
	f := func(args string, want func(Options) any, value any) {
		t.Helper()
		o, err := ParseServe(strings.Fields(args), noEnv)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			return
		}
		if got := want(o); fmt.Sprint(got) != fmt.Sprint(value) {
			t.Errorf("%s: got %v; want %v", args, got, value)
		}
	}
	f("", func(o Options) any { return []any{o.Model, o.Port, o.Host, o.Device, o.PrefixCache} }, []any{"", 8000, "0.0.0.0", "cpu", true})
	f("org/name --port=9", func(o Options) any { return []any{o.Model, o.Port} }, []any{"org/name", 9})
	f("--model m --max_model_len 128 --block-size 64", func(o Options) any { return []any{o.Model, o.MaxModelLen, o.BlockTokens} }, []any{"m", 128, 64})
	f("--max-model-len 4k", func(o Options) any { return o.MaxModelLen }, 4000)
	f("--max-model-len 4K", func(o Options) any { return o.MaxModelLen }, 4096)
	f("--max-model-len auto", func(o Options) any { return o.MaxModelLen }, -1)
	f("--served-model-name a b --port 1", func(o Options) any { return []any{o.ServedNames, o.Port} }, []any{[]string{"a", "b"}, 1})
	f("--gpu-memory-util 0.9", func(o Options) any { return o.Utilization }, 0.9)
	f("--swap-space 4", func(o Options) any { return o.Warnings }, []string{"flags of vLLM's that change nothing here: --swap-space"})
	f("--no-enable-prefix-caching", func(o Options) any { return o.PrefixCache }, false)
	f("--enable-prefix-caching", func(o Options) any { return o.PrefixCache }, true)
	f("-tp 1 -tp=1 --tensor-parallel-size=1 --enforce-eager --trust-remote-code", func(o Options) any { return o.Warnings }, "[flags of vLLM's that change nothing here: --enforce-eager, --trust-remote-code]")
	f("--pace 20ms --cpus 0-3 --mems 0", func(o Options) any { return []any{o.Pace, o.CPUs, o.Mems} }, []any{"20ms", "0-3", "0"})
	f("--quantization sym_int4", func(o Options) any { return format(&o) }, kernels.FormatInt4)
	f("--tool-call-parser hermes --enable-auto-tool-choice --reasoning-parser qwen3", func(o Options) any { return o.toolParser() + o.reasoningParser() }, "hermesqwen3")
	f("--dtype float32", func(o Options) any { return []any{format(&o), kvType(&o)} }, []any{kernels.FormatF32, kernels.F32})
	f("", func(o Options) any { return []any{format(&o), kvType(&o)} }, []any{kernels.FormatBF16, kernels.BF16})
	f("--seed -3 --revision v2 --tokenizer t --response-role r --long-prefill-token-threshold 9 --download-dir /d", func(o Options) any {
		return []any{*o.Seed, o.Revision, o.Tokenizer, o.ResponseRole, o.LongPrefill, o.Caches}
	}, []any{^uint64(2), "v2", "t", "r", 9, []string{"/d"}})
	f("--tokenizer-mode bpe-qwen --load-format safetensors --scheduling-policy priority --stream-interval 1 --enable-chunked-prefill --runner auto", func(o Options) any { return len(o.Warnings) }, 0)
	f("--disable-sliding-window --return-tokens-as-token-ids --enable-log-requests --disable-log-stats", func(o Options) any {
		return []any{o.NoWindow, o.TokensAsIDs, o.LogRequests, o.NoLogStats}
	}, []any{true, true, true, true})
	f(`--override-generation-config {"temperature":0.5,"top_k":7}`, func(o Options) any { return []any{*o.Sampling.Temperature, *o.Sampling.TopK} }, []any{0.5, 7})
	spec := func(o Options) any { return o.Speculative }
	f("--speculative-config.method ngram --speculative-config.num_speculative_tokens=4", spec, Speculative{"ngram", 4, 5, 2})
	f(`-sc.prompt_lookup_max 3 --speculative_config {"method":"ngram"} -sc.num_speculative_tokens 4`, spec, Speculative{"ngram", 4, 3, 2})
	f("--spec-method ngram --spec-tokens 2", spec, Speculative{"ngram", 2, 5, 2})
	f("--compilation-config.mode=3 -O3 -O 3 -O=2 -cc.cudagraph_capture_sizes+ 1,2 --cudagraph-capture-sizes 1 2", func(o Options) any { return o.Warnings }, "[flags of vLLM's that change nothing here: --compilation-config, --optimization-level, --cudagraph-capture-sizes]")
	f("--scheduling-policy fcfs", func(o Options) any { return o.FCFS }, true)
	f("--scheduling-policy priority --hf-token --port 3", func(o Options) any { return []any{o.FCFS, o.Port} }, "[false 3]")
	f("--default-chat-template-kwargs.enable_thinking false", func(o Options) any { return string(o.TemplateDefaults["enable_thinking"]) }, "false")
	f(`--structured-outputs-config {"backend":"xgrammar","disable_any_whitespace":true,"reasoning_parser":"qwen3"}`, func(o Options) any { return []any{o.CompactJSON, o.ReasoningParser} }, "[true qwen3]")
	f(`--allowed-origins ["https://a.b"] --allow-credentials --no-allow-cred`, func(o Options) any { return o.CORS }, CORS{[]string{"https://a.b"}, []string{"*"}, []string{"*"}, false})
	f("--api-key a b --api-key c", func(o Options) any { return o.APIKeys }, "[c]")
	f("--max-num-batched-tokens 8k --kv-cache-memory-bytes 2G --max-model-len 25.6k", func(o Options) any { return []any{o.MaxBatched, o.KVBytes, o.MaxModelLen} }, []any{8000, 2 << 30, 25600})
	f("--max-num-scheduled-tokens 1024 --max-num-active-seqs 8", func(o Options) any { return []any{o.MaxBatched, o.MaxSeqs} }, "[1024 8]")
	f("--quantization compressed-tensors -q gptq_marlin", func(o Options) any { return o.Quantization }, "gptq")
	f("--device-ids 0000:18:00.0 --numa-bind-nodes 1 --numa-bind-cpus 0-3", func(o Options) any { return []any{o.Device, o.Mems, o.CPUs} }, "[xpu:0000:18:00.0 1 0-3]")
	f("--logging-config.log_level ERROR", func(o Options) any { return o.LogLevel }, slog.LevelError)
	f("--log-level debug --logging-config.log_level ERROR", func(o Options) any { return o.LogLevel }, slog.LevelDebug)
	f(`--speculative-config {"method":"ngram","num_speculative_tokens":3}`, func(o Options) any { return o.Speculative }, Speculative{"ngram", 3, 5, 2})
}

func TestFlagErrors(t *testing.T) {
	f := func(args, want string) {
		t.Helper()
		_, err := ParseServe(strings.Fields(args), noEnv)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %q", args, err, want)
		}
	}
	f("--profiler-config.profiler cuda", "\"torch\" takes this worker's own profiles")
	f("--profiler-config.profiler torch", "want the absolute path of a folder")
	f("--profiler-config.delay_iterations x", "want JSON")
	f("--modle x", "there is no flag --modle")
	f("--tool-cal-parser x", "did you mean --tool-call-parser?")
	f("--max-num 3", "--max-num may mean --max-num-batched-tokens, --max-num-scheduled-tokens, --max-num-seqs")
	f("--port x", "--port: \"x\"; want a whole number")
	f("--port", "--port needs a value")
	f("a b", "one model is served by one worker")
	f("a --model b", "the model is named twice")
	f("-tp 2", "start more workers instead")
	f("-tp=2", "start more workers instead")
	f("--pipeline-parallel-size 2", "start more workers instead")
	f("--lora-modules a=b", "--lora-modules needs --enable-lora")
	f("--enable-lora --lora-modules a=b a=c", "names a twice")
	f("--enable-lora --served-model-name m --lora-modules m=b", "m is the name of the model itself")
	f("--enable-lora --lora-modules a", "want name=path, or JSON")
	f(`--enable-lora --lora-modules {"name":"a","path":"b","rank":1}`, "want name=path, or JSON")
	f(`--enable-lora --lora-modules {"name":"a"}`, "want a name and a path")
	f("--max-lora-rank 512", "from 1 to 256")
	f("--lora-dtype float16", "adapters are kept in bfloat16")
	f("--quantization bitsandbytes", "want one of auto, none, fp8, sym_int4, int8, gptq, awq, compressed-tensors, mxfp4, gguf")
	f("--device tpu", "want cpu or xpu")
	f("--max-num-batched-tokens 4", "must be at least --max-num-seqs")
	f("--speculative-config {}", "want ngram")
	f("--tool-call-parser x", "known are deepseek_v3, deepseek_v31")
	f("--reasoning-parser x", "known are deepseek_r1, deepseek_v3")
	f("--enable-auto-tool-choice --tool-call-parser none", "requires --tool-call-parser")
	f("--max-logprobs 65", "from 0 to 64")
	f("--seed x", "want a whole number")
	f("--tokenizer-mode mistral", "all of them give the same tokens")
	f("--load-format pt", "safetensors or GGUF files")
	f("--convert embed", "what it was made for")
	f("--scheduling-policy lifo", "want one of fcfs, priority")
	f("-O3 -tpx", "there is no flag -tpx")
	f("--port.a 3", "--port takes no JSON, so that --port.a names nothing")
	f("--compilation-config {", "is not JSON")
	f("--speculative-config.method eagle3", "want ngram, or leave the flag out")
	f("--spec-tokens 3", "needs --spec-method ngram")
	f("--ssl-keyfile k", "--ssl-keyfile needs --ssl-certfile")
	f("--ssl-certfile c --ssl-cert-reqs 2", "needs --ssl-ca-certs")
	f("--ssl-certfile c --ssl-ciphers RC4-MD5", "want some of ECDHE-ECDSA-AES128-GCM-SHA256:")
	f("--allowed-origins *", "is not JSON")
	f("--max-num-scheduled-tokens 4096", "must be at most --max-num-batched-tokens")
	f("--max-num-active-seqs 300", "must be at most --max-num-seqs")
	f("--default-chat-template-kwargs.messages []", "messages is set by the server")
	f("--structured-outputs-config.enable_in_reasoning true", "behind its reasoning")
	f("--kv-cache-memory-bytes 1.5", "want a number of bytes")
	f("--log-level loud", "want DEBUG, INFO, WARNING, ERROR or CRITICAL")
	f("--device-ids 0,1", "start more workers instead")
	f("--enable-log-outputs", "answers are never written to the log")
	f("--middleware a.b", "a plugin of the door can look at requests")
	f("--chat-template-content-format openai", "joined before the template sees it")
	f("--stream-interval 5", "every token is sent when it is there")
	f("--no-enable-chunked-prefill", "always computed in chunks")
	f(`--override-generation-config {"max_new_tokens":7}`, "want JSON with temperature")
	f("--data-parallel-size 2", "start more workers instead")
}

// copyDemo writes the demonstration model's files to a folder.
func copyDemo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, demo.FS); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestStartErrors has starts that fail, the sentence that each gives, and that
// nothing is left behind (goleak).
func TestStartErrors(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		o, err := ParseServe(append([]string{"--host", "127.0.0.1", "--port", "0"}, args...), noEnv)
		if err != nil {
			t.Fatal(err)
		}
		err = Serve(context.Background(), o, quiet)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v; want %q", args, err, want)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	busy := ln.Addr().(*net.TCPAddr).Port
	f(fmt.Sprintf("port %d of 127.0.0.1 is in use", busy), "--port", fmt.Sprint(busy))
	_ = ln.Close()
	f("there is no such folder", "--model", "/nowhere/at/all")
	f("hf download org/name", "--model", "org/name")
	f("--device xpu:0000:ff:1f.7", "--device", "xpu:0000:ff:1f.7")
	f("--cpus", "--cpus", "x")
	f("KV cache is needed", "--num-gpu-blocks-override", "3")
	f("--tokenizer: --model /nowhere", "--tokenizer", "/nowhere")
	f("is a model of kind generate", "--runner", "pooling")

	dir := copyDemo(t)
	cut := filepath.Join(dir, "model.safetensors")
	st, err := os.Stat(cut)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(cut, st.Size()-100); err != nil {
		t.Fatal(err)
	}
	f("model.safetensors", "--model", dir)
	head := make([]byte, 8)
	binary.LittleEndian.PutUint64(head, 1<<40)
	if err := os.WriteFile(cut, head, 0o600); err != nil {
		t.Fatal(err)
	}
	f("model.safetensors", "--model", dir)
	for _, file := range []string{"tokenizer.json", "config.json"} {
		dir := copyDemo(t)
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
		f(file, "--model", dir)
	}
	dir = copyDemo(t)
	if err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte("{% for %}"), 0o600); err != nil {
		t.Fatal(err)
	}
	f("chat template, line 1", "--model", dir)
	for _, fixture := range []string{"qwen3_next", "qwen3_5"} {
		f("--speculative-config: ", "--model", fixtureFolder(t, fixture, nil), "--speculative-config", `{"method":"ngram","num_speculative_tokens":2}`)
	}
}

// TestServe starts a worker on the demonstration model, asks it, and stops it.
func TestServe(t *testing.T) {
	s := serveDemo(t, "--served-model-name", "X", "--cpus", "0")
	resp, err := http.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"X","messages":[{"role":"user","content":"Say"}],"max_tokens":4}`))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != 200 || !strings.Contains(string(body), `"model":"X"`) {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	http.DefaultClient.CloseIdleConnections()
	s.stop()
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://")); err == nil {
		t.Fatal("the port is still open")
	}
}

// sees closes a channel when a line with text is written.
type sees struct {
	text string
	ch   chan struct{}
}

func (s *sees) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.text) {
		close(s.ch)
	}
	return len(p), nil
}

func TestFindModel(t *testing.T) {
	dir := t.TempDir()
	repo := filepath.Join(dir, "models--org--name")
	for _, d := range []string{"refs", "snapshots/abc"} {
		if err := os.MkdirAll(filepath.Join(repo, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(repo, "refs", "main"), []byte("abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := findModel("org/name", "", []string{"/nowhere", dir})
	if want := filepath.Join(repo, "snapshots", "abc"); err != nil || got != want {
		t.Fatalf("got %s, %v; want %s", got, err, want)
	}
	if err := os.MkdirAll(filepath.Join(repo, "snapshots", "def"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(repo, "refs", "v2"), []byte("def"), 0o600); err != nil {
		t.Fatal(err)
	}
	for revision, want := range map[string]string{"v2": "def", "def": "def", "main": "abc"} {
		if got, err := findModel("org/name", revision, []string{dir}); err != nil || filepath.Base(got) != want {
			t.Errorf("revision %s: got %s, %v; want %s", revision, got, err, want)
		}
	}
	if _, err := findModel("org/name", "../../x", []string{dir}); err == nil || !strings.Contains(err.Error(), "--revision ../../x") {
		t.Errorf("a revision that is none: %v", err)
	}
	if _, err := findModel("org/other", "", []string{dir}); err == nil || !strings.Contains(err.Error(), "models--org--other") {
		t.Fatalf("got %v; want the path that was searched", err)
	}
	if _, err := fs.Stat(demo.FS, "config.json"); err != nil {
		t.Fatal(err)
	}
}

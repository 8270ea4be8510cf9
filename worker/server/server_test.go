package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"roundhouse/worker"
	"roundhouse/worker/demo"
	"roundhouse/worker/kv"
	"roundhouse/worker/metrics"
	"roundhouse/worker/server"
	"roundhouse/worker/template"
	"roundhouse/worker/tokenizer"
	"roundhouse/worker/workertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a server over the model of no weights with the demonstration model's
// tokenizer and chat template.
type rig struct {
	t      *testing.T
	url    string
	engine *worker.Engine
	model  *workertest.Model
	tok    *tokenizer.Tokenizer
}

func loadTokenizer(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	data, err := fs.ReadFile(demo.FS, "tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func loadTemplate(t *testing.T) func(map[string]any) ([]tokenizer.Segment, error) {
	t.Helper()
	data, err := fs.ReadFile(demo.FS, "tokenizer_config.json")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Template string `json:"chat_template"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	tmpl, err := template.Parse(c.Template)
	if err != nil {
		t.Fatal(err)
	}
	return func(vars map[string]any) ([]tokenizer.Segment, error) { return tmpl.Render(vars, template.Limits{}) }
}

func newRig(t *testing.T, change func(*server.Config, *worker.Config)) *rig {
	t.Helper()
	tok := loadTokenizer(t)
	groups := []kv.Group{{Blocks: 512, BlockTokens: 8}}
	m := workertest.New(tok.Size(), groups)
	eos, _ := tok.TokenID("<|im_end|>")
	wc := worker.Config{
		Exec: m, Memory: m, Groups: groups, PrefixCache: true, Limits: worker.Limits{Tokens: 512, Seqs: 32, Rows: 64}, MaxModelLen: 512,
		Vocab: tok.Size(), EOS: []int32{eos}, Models: []string{"m", "alias"}, Generation: "g",
	}
	sc := server.Config{
		Tokenizer: tok, Chat: server.Chat{Template: loadTemplate(t)}, Models: []string{"m", "alias"}, Root: "root", Version: "v", MaxModelLen: 512,
		Vocab: tok.Size(), EOSToken: "<|im_end|>", MaxLogprobs: 20, BodyLimit: 1 << 20,
		CacheConfig: []metrics.Label{{Name: "block_size", Value: "8"}}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if change != nil {
		change(&sc, &wc)
	}
	sc.Engine = worker.NewEngine(wc)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- sc.Engine.Run(ctx) }()
	hs := httptest.NewServer(server.New(sc))
	t.Cleanup(func() {
		hs.CloseClientConnections()
		cancel()
		<-ran
		hs.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return &rig{t, hs.URL, sc.Engine, m, tok}
}

type object = map[string]any

// post sends a body and returns status and answer.
func (r *rig) post(path string, body any) (int, []byte) {
	r.t.Helper()
	data, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		if err != nil {
			r.t.Fatal(err)
		}
		data = string(b)
	}
	resp, err := http.Post(r.url+path, "application/json", strings.NewReader(data))
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

func (r *rig) get(path string) (int, string) {
	r.t.Helper()
	resp, err := http.Get(r.url + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// ask expects an answer.
func (r *rig) ask(path string, body object) object {
	r.t.Helper()
	code, data := r.post(path, body)
	var out object
	if err := json.Unmarshal(data, &out); err != nil || code != http.StatusOK {
		r.t.Fatalf("%s: status %d, %s", path, code, data)
	}
	return out
}

// stream returns the events of a stream, [DONE] as nil.
func (r *rig) stream(path string, body object) []object {
	r.t.Helper()
	body = with(body, "stream", true)
	data, _ := json.Marshal(body)
	resp, err := http.Post(r.url+path, "application/json", bytes.NewReader(data))
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(resp.Body)
		r.t.Fatalf("%s: status %d, %s", path, resp.StatusCode, answer)
	}
	var events []object
	scan := bufio.NewScanner(resp.Body)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		line, ok := strings.CutPrefix(scan.Text(), "data: ")
		if !ok {
			continue
		}
		if line == "[DONE]" {
			events = append(events, nil)
			continue
		}
		var e object
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			r.t.Fatalf("event %q: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

// with copies a body and sets a field.
func with(body object, pairs ...any) object {
	out := object{}
	for k, v := range body {
		out[k] = v
	}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i].(string)] = pairs[i+1]
	}
	return out
}

// said is what one event of a stream says of choice 0.
type said struct {
	text   string
	tokens []int32
	finish string
	stop   string
	rest   string // all else, to compare
}

// read tells an event's parts apart.
func read(e object) said {
	var s said
	choices, _ := e["choices"].([]any)
	if len(choices) == 0 {
		return s
	}
	c := choices[0].(object)
	s.text, _ = c["text"].(string)
	if d, ok := c["delta"].(object); ok {
		s.text, _ = d["content"].(string)
		rest := with(d)
		delete(rest, "content")
		if len(rest) > 0 {
			data, _ := json.Marshal(rest)
			s.rest = string(data)
		}
	}
	ids, _ := c["token_ids"].([]any)
	for _, id := range ids {
		s.tokens = append(s.tokens, int32(id.(float64)))
	}
	s.finish, _ = c["finish_reason"].(string)
	if stop, ok := c["stop_reason"]; ok && stop != nil {
		data, _ := json.Marshal(stop)
		s.stop = string(data)
	}
	if l, ok := c["logprobs"]; ok && l != nil {
		data, _ := json.Marshal(l)
		s.rest += string(data)
	}
	return s
}

var tokenizerOptions = tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true}

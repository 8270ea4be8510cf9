package launch

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/worker/demo"
)

// textFolder is a folder of one of worker/model's golden files with the
// demonstration model's tokenizer, and more files.
func textFolder(t *testing.T, fixture string, files map[string]string) string {
	t.Helper()
	w, err := loadTextFiles(demo.FS, "demo", "")
	if err != nil {
		t.Fatal(err)
	}
	dir := pooledFolder(t, fixture, w.tokenizer.Size())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// vector asks for one vector.
func vector(t *testing.T, url string, body map[string]any) []float64 {
	t.Helper()
	var a struct {
		Data []struct{ Embedding []float64 }
	}
	if err := postJSON(url+"/v1/embeddings", body, &a); err != nil {
		t.Fatal(err)
	}
	return a.Data[0].Embedding
}

// TestEmbeddingPrompts: a decoder that embeds, as Qwen3-Embedding: the prompts
// of its files by default and by name, an instruction that the client writes
// itself, and pooling and length as modules.json and its kin say.
func TestEmbeddingPrompts(t *testing.T) {
	const instruct = "Instruct: find\nQuery:"
	plain := demoServer(t, "--dtype", "float32", "--model", textFolder(t, "qwen3_embed", nil)).URL
	files := map[string]string{
		"config_sentence_transformers.json": `{"prompts":{"query":"Instruct: find\nQuery:","document":"","other":"o "},"default_prompt_name":"query"}`,
		"sentence_bert_config.json":         `{"max_seq_length":40}`,
	}
	prompted := demoServer(t, "--dtype", "float32", "--model", textFolder(t, "qwen3_embed", files)).URL
	same := func(what string, a, b []float64, want bool) {
		t.Helper()
		if (fmt.Sprint(a) == fmt.Sprint(b)) != want {
			t.Errorf("%s: the same vector: %v; want %v", what, !want, want)
		}
	}
	bare := vector(t, plain, map[string]any{"input": "a b c"})
	client := vector(t, plain, map[string]any{"input": instruct + "a b c"})
	same("the default prompt", vector(t, prompted, map[string]any{"input": "a b c"}), client, true)
	same("the default prompt by name", vector(t, prompted, map[string]any{"input": "a b c", "prompt_name": "query"}), client, true)
	same("no prompt by name", vector(t, prompted, map[string]any{"input": "a b c", "prompt_name": "document"}), bare, true)
	same("another prompt", vector(t, prompted, map[string]any{"input": "a b c", "prompt_name": "other"}), bare, false)
	same("an instruction", client, bare, false)
	err := postJSON(prompted+"/v1/embeddings", map[string]any{"input": "a", "prompt_name": "none"}, &struct{}{})
	if err == nil || !strings.Contains(err.Error(), `it has [\"document\" \"other\" \"query\"]`) {
		t.Errorf("got %v; want the names of the prompts", err)
	}
	err = postJSON(prompted+"/v1/embeddings", map[string]any{"input": strings.Repeat("word ", 60)}, &struct{}{})
	if err == nil || !strings.Contains(err.Error(), "maximum context length is 40 tokens") {
		t.Errorf("got %v; want max_seq_length's 40", err)
	}
	// By the mean, and not normalised, it is another vector.
	mean := demoServer(t, "--dtype", "float32", "--model", textFolder(t, "qwen3_embed", map[string]string{
		"modules.json":          `[{"path":"","type":"sentence_transformers.models.Transformer"},{"path":"1_Pooling","type":"sentence_transformers.models.Pooling"}]`,
		"1_Pooling/config.json": `{"pooling_mode_mean_tokens":true}`,
	})).URL
	v := vector(t, mean, map[string]any{"input": "a b c"})
	if length := norm(v); math.Abs(length-1) < 1e-3 {
		t.Errorf("a vector that no module normalises has length %g", length)
	}
}

func norm(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}

// TestMatryoshka: a vector cut to its first numbers has unit length again, as
// floats and in base64; a model that was not trained so refuses.
func TestMatryoshka(t *testing.T) {
	dir := textFolder(t, "qwen3_embed", nil)
	url := demoServer(t, "--model", dir, "--hf-overrides", `{"matryoshka_dimensions":[8,16]}`).URL
	whole := vector(t, url, map[string]any{"input": "a b c"})
	cut := vector(t, url, map[string]any{"input": "a b c", "dimensions": 8})
	length := norm(whole[:8])
	if len(cut) != 8 || math.Abs(norm(cut)-1) > 1e-6 {
		t.Fatalf("cut to %d numbers of length %g", len(cut), norm(cut))
	}
	for i, x := range cut {
		if math.Abs(x-whole[i]/length) > 1e-6 {
			t.Errorf("number %d is %g; want %g", i, x, whole[i]/length)
		}
	}
	var packed struct{ Data []struct{ Embedding string } }
	if err := postJSON(url+"/v1/embeddings", map[string]any{"input": "a b c", "dimensions": 8, "encoding_format": "base64"}, &packed); err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(packed.Data[0].Embedding)
	if err != nil || len(raw) != 32 {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	for i, x := range cut {
		if got := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))); math.Abs(got-x) > 1e-7 {
			t.Errorf("base64: number %d is %g; want %g", i, got, x)
		}
	}
	refuse := func(url string, dimensions int, want string) {
		t.Helper()
		err := postJSON(url+"/v1/embeddings", map[string]any{"input": "a", "dimensions": dimensions}, &struct{}{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("dimensions %d: got %v; want %q", dimensions, err, want)
		}
	}
	refuse(url, 12, "only supports [8 16] matryoshka dimensions")
	refuse(demoServer(t, "--model", dir).URL, 8, "does not support matryoshka")
	free := demoServer(t, "--model", dir, "--hf-overrides", `{"is_matryoshka":true}`).URL
	if v := vector(t, free, map[string]any{"input": "a", "dimensions": 5}); len(v) != 5 {
		t.Errorf("%d numbers; want 5", len(v))
	}
	refuse(free, 0, "dimensions must be 1 to")
	refuse(free, 1<<20, "dimensions must be 1 to")
}

// TestReranker: Qwen3-Reranker over HTTP. Its prompt is written by the worker,
// or by the client as vLLM's do; its score is the chance of "yes" against "no".
func TestReranker(t *testing.T) {
	// The demonstration model's tokenizer has no "no" and "yes".
	const over = `{"architectures":["Qwen3ForSequenceClassification"],"classifier_from_token":["a","b"],"is_original_qwen3_reranker":true}`
	dir := textFolder(t, "qwen3", nil)
	url := demoServer(t, "--dtype", "float32", "--model", dir, "--hf-overrides", over).URL
	score := func(body map[string]any) float64 {
		t.Helper()
		var a struct{ Data []struct{ Score float64 } }
		if err := postJSON(url+"/score", body, &a); err != nil {
			t.Fatal(err)
		}
		return a.Data[0].Score
	}
	raw := score(map[string]any{"text_1": "who", "text_2": "me"})
	written := score(map[string]any{"text_1": rerankBefore + "<Instruct>: " + rerankInstruction + "\n<Query>: who\n", "text_2": "<Document>: me" + rerankAfter})
	if raw != written || !(raw > 0 && raw < 1) {
		t.Errorf("score %g; the prompt that a client wrote gives %g", raw, written)
	}
	if other := score(map[string]any{"text_1": "who", "text_2": "me", "instruction": "find names"}); other == raw {
		t.Error("an instruction changes nothing")
	}
	var ranked struct {
		Results []struct {
			Index int
			Score float64 `json:"relevance_score"`
		}
	}
	if err := postJSON(url+"/rerank", map[string]any{"query": "who", "documents": []string{"you", "me", "they"}, "instruction": "find names"}, &ranked); err != nil {
		t.Fatal(err)
	}
	if len(ranked.Results) != 3 || ranked.Results[0].Score < ranked.Results[2].Score {
		t.Errorf("ranked %+v", ranked.Results)
	}
	// What a document says cannot end it.
	if a, b := score(map[string]any{"text_1": "who", "text_2": "me<|im_end|>"}), score(map[string]any{"text_1": "who", "text_2": "me"}); a == b {
		t.Error("control tokens of a document are lost")
	}

	refused := func(want string, args ...string) {
		t.Helper()
		o, err := ParseServe(append([]string{"--model", dir}, args...), noEnv)
		if err == nil {
			_, err = Open(o, quiet)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v; want %q", args, err, want)
		}
	}
	refused(`the tokenizer has no token "no"`, "--task", "score")
	refused(`want the token for no and the one for yes`, "--hf-overrides", `{"classifier_from_token":["a"]}`)
	refused(`want a JSON object`, "--hf-overrides", `[]`)
	refused(`architecture "X" is not supported`, "--hf-overrides", `{"architectures":["X"]}`)
}

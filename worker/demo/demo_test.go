package demo_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"testing"

	"roundhouse/worker/demo"
)

// TestFiles: the model is whole and small enough to be built in.
func TestFiles(t *testing.T) {
	for _, name := range []string{"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} {
		info, err := fs.Stat(demo.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "model.safetensors" && info.Size() > 8<<20 {
			t.Errorf("%s has %d bytes, more than 8 MiB", name, info.Size())
		}
	}
}

// TestGoldenBelongsToModel: whoever exports new weights makes new golden files as well.
func TestGoldenBelongsToModel(t *testing.T) {
	f, err := os.Open("testdata/golden.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Weights   string `json:"weights_sha256"`
		Tokenizer string `json:"tokenizer_sha256"`
	}
	if err := json.NewDecoder(z).Decode(&golden); err != nil {
		t.Fatal(err)
	}
	same := func(name, want string) {
		t.Helper()
		content, err := fs.ReadFile(demo.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want {
			t.Errorf("golden.json.gz was made from another %s: run train/golden.py", name)
		}
	}
	same("model.safetensors", golden.Weights)
	same("tokenizer.json", golden.Tokenizer)
}

// TestQuestions: 200 different questions of each of the seven kinds.
func TestQuestions(t *testing.T) {
	content, err := os.ReadFile("testdata/questions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	count, seen := map[string]int{}, map[string]bool{}
	for s := bufio.NewScanner(bytes.NewReader(content)); s.Scan(); {
		var q struct{ Kind, Question, Answer string }
		if err := json.Unmarshal(s.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		if q.Answer == "" || seen[q.Question] {
			t.Errorf("%q is asked twice or has no answer", q.Question)
		}
		seen[q.Question] = true
		count[q.Kind]++
	}
	for _, kind := range []string{"arithmetic", "copy", "reverse", "sort", "facts", "json", "count"} {
		if count[kind] != 200 {
			t.Errorf("%d questions of kind %s, want 200", count[kind], kind)
		}
	}
}

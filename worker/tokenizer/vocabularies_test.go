package tokenizer

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"roundhouse/worker/gguf"
)

// families is where `make test` puts what a public package has of real models:
// vocabularies as GGUF files, and chat templates.
const families = "../../build/families"

// vocabulary is one family of vocabularies/vocabularies.json.
type vocabulary struct {
	File    string         `json:"file"`  // digest
	Words   string         `json:"words"` // how they are filled in: merges, scores or pieces
	Frame   map[string]any `json:"frame"` // tokenizer.json without them
	Digests []string       `json:"digests"`
}

// TestVocabularies compares with the tokenizers library, over 10,000 strings,
// with the vocabularies of real models. Only digests of its answers are here;
// vocabularies/vocabularies.py made them.
func TestVocabularies(t *testing.T) {
	if _, err := os.Stat(families); err != nil {
		t.Skip("build/families is not there; `make test` brings it in")
	}
	var all map[string]*vocabulary
	readJSON(t, "vocabularies/vocabularies.json", &all)
	texts := testStrings(t)
	for name, v := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join(families, "ggml-vocab-"+name+".gguf"))
			if err != nil {
				t.Fatal(err)
			}
			if sum := sha256.Sum256(data); hex.EncodeToString(sum[:])[:16] != v.File {
				t.Fatal("another version of the file")
			}
			tok, err := Load(v.fill(t, data))
			if err != nil {
				t.Fatal(err)
			}
			per := len(texts) / len(v.Digests)
			for i, want := range v.Digests {
				if got := answers(tok, texts[i*per:(i+1)*per]); got != want {
					t.Errorf("strings %d to %d: digest %s; want %s", i*per, (i+1)*per-1, got, want)
				}
			}
		})
	}
}

// fill makes a whole tokenizer.json, as vocabularies.py does.
func (v *vocabulary) fill(t *testing.T, data []byte) []byte {
	t.Helper()
	f, err := gguf.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	get := func(key string) []string {
		list, err := f.Strings(key)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	tokens := get("tokenizer.ggml.tokens")
	kinds, err := f.Integers("tokenizer.ggml.token_type")
	if err != nil {
		t.Fatal(err)
	}
	if v.Words == "pieces" {
		for i, s := range tokens {
			if word, ok := strings.CutPrefix(s, "▁"); ok {
				tokens[i] = word
			} else if kinds[i] != ggufControl {
				tokens[i] = "##" + s
			}
		}
	}
	ids := map[string]int{}
	var added []map[string]any
	for i, s := range tokens {
		ids[s] = i
		if kinds[i] == ggufControl || kinds[i] == ggufUser {
			added = append(added, map[string]any{
				"id": i, "content": s, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": kinds[i] == ggufControl,
			})
		}
	}
	model := v.Frame["model"].(map[string]any)
	model["vocab"], v.Frame["added_tokens"] = ids, added
	switch v.Words {
	case "merges":
		var merges [][]string
		for _, m := range get("tokenizer.ggml.merges") {
			merges = append(merges, strings.SplitN(m, " ", 2))
		}
		model["merges"] = merges
	case "scores":
		scores, ok := f.Values["tokenizer.ggml.scores"].([]float32)
		if !ok {
			t.Fatal("the file has no scores")
		}
		model["merges"] = mergesOf(tokens, scores, ids)
	}
	whole, err := json.Marshal(v.Frame)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// mergesOf are the pairs that make a token, the best score first.
func mergesOf(tokens []string, scores []float32, ids map[string]int) [][2]string {
	type merge struct {
		a, b  string
		score float32
	}
	var all []merge
	for i, s := range tokens {
		var local []merge
		for at := range s {
			_, left := ids[s[:at]]
			if _, right := ids[s[at:]]; at > 0 && left && right {
				local = append(local, merge{s[:at], s[at:], scores[i]})
			}
		}
		slices.SortStableFunc(local, func(x, y merge) int { return cmp.Or(ids[x.a]-ids[y.a], ids[x.b]-ids[y.b]) })
		all = append(all, local...)
	}
	slices.SortStableFunc(all, func(x, y merge) int {
		return cmp.Or(cmp.Compare(y.score, x.score), utf8.RuneCountInString(y.a)-utf8.RuneCountInString(x.a), utf8.RuneCountInString(y.b)-utf8.RuneCountInString(x.b))
	})
	pairs := make([][2]string, len(all))
	for i, m := range all {
		pairs[i] = [2]string{m.a, m.b}
	}
	return pairs
}

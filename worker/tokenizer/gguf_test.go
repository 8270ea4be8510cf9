package tokenizer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"roundhouse/worker/gguf"
)

// ggufBytes is the vocabulary of testdata/gpt2.json.gz as a GGUF file has it.
func ggufBytes(t testing.TB) map[string]gguf.Value { return ggufOf(t, "gpt2", "gpt-2") }

// ggufOf is the vocabulary of a byte-level tokenizer of testdata as a GGUF file
// has it.
func ggufOf(t testing.TB, name, pre string) map[string]gguf.Value {
	t.Helper()
	var f struct {
		Added []addedToken `json:"added_tokens"`
		Model bpeFile      `json:"model"`
	}
	if err := json.Unmarshal(readGzip(t, "testdata/"+name+".json.gz"), &f); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int32{}
	for _, a := range f.Added {
		f.Model.Vocab[a.Content], kinds[a.Content] = a.ID, ggufUser
		if a.Special {
			kinds[a.Content] = ggufControl
		}
	}
	tokens := slices.SortedFunc(maps.Keys(f.Model.Vocab), func(a, b string) int { return int(f.Model.Vocab[a] - f.Model.Vocab[b]) })
	list := make([]int32, len(tokens))
	for i, token := range tokens {
		list[i] = max(kinds[token], ggufNormal)
	}
	merges := make([]string, len(f.Model.Merges))
	for i, m := range f.Model.Merges {
		merges[i] = m[0] + " " + m[1]
	}
	return map[string]gguf.Value{"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre,
		"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": list, "tokenizer.ggml.merges": merges}
}

// ggufPieces is the vocabulary that testdata/gguf_vectors.py trained.
func ggufPieces(t testing.TB) map[string]gguf.Value {
	t.Helper()
	var f struct {
		Tokens []string  `json:"tokens"`
		Kinds  []int32   `json:"kinds"`
		Scores []float32 `json:"scores"`
	}
	if err := json.Unmarshal(readGzip(t, "testdata/gguf_spm.json.gz"), &f); err != nil {
		t.Fatal(err)
	}
	return map[string]gguf.Value{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": f.Tokens, "tokenizer.ggml.token_type": f.Kinds,
		"tokenizer.ggml.scores": f.Scores, "tokenizer.ggml.bos_token_id": uint32(1), "tokenizer.ggml.eos_token_id": uint32(2)}
}

// gemmaOf is what Gemma's files say otherwise: no space before the text, and
// user-defined tokens, as gguf_vectors.py has them.
func gemmaOf(pieces map[string]gguf.Value) map[string]gguf.Value {
	user := []string{"\r\n\r\n", "  ", "   ", "    ", "<unused0>", "</code>"}
	return map[string]gguf.Value{"add_space_prefix": false,
		"tokens":     slices.Concat(pieces["tokenizer.ggml.tokens"].([]string), user),
		"token_type": slices.Concat(pieces["tokenizer.ggml.token_type"].([]int32), slices.Repeat([]int32{ggufUser}, len(user))),
		"scores":     slices.Concat(pieces["tokenizer.ggml.scores"].([]float32), slices.Repeat([]float32{-1000}, len(user)))}
}

// with is values with some replaced.
func with(values map[string]gguf.Value, changes map[string]gguf.Value) *gguf.File {
	f := &gguf.File{Values: maps.Clone(values)}
	for key, v := range changes {
		key = "tokenizer.ggml." + key
		if f.Values[key] = v; v == nil {
			delete(f.Values, key)
		}
	}
	return f
}

// TestGGUFVectors compares with llama.cpp: testdata/gguf_vectors.py made the
// digests of what it answers, for each pre-tokenizer and for SentencePiece.
func TestGGUFVectors(t *testing.T) {
	var digests map[string][]string
	readJSON(t, "testdata/gguf.json", &digests)
	texts := testStrings(t)
	spelled, pieces := ggufBytes(t), ggufPieces(t)
	for name, want := range digests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := with(spelled, map[string]gguf.Value{"pre": name})
			switch name {
			case "spm":
				f = with(pieces, nil)
			case "gemma":
				f = with(pieces, gemmaOf(pieces))
			}
			tok, err := LoadGGUF(f)
			if err != nil {
				t.Fatal(err)
			}
			per, bad := len(texts)/len(want), 0
			for i, w := range want {
				if raceDetector && i%10 != 0 {
					continue // races show in the tenth part, too
				}
				if got := idsDigest(tok, texts[i*per:(i+1)*per]); got != w {
					if bad++; bad <= 3 {
						t.Errorf("strings %d to %d: digest %s; want %s", i*per, (i+1)*per-1, got, w)
					}
				}
			}
			if bad > 0 {
				t.Errorf("%d of %d digests differ", bad, len(want))
			}
		})
	}
}

// TestGGUFAsFile: the tokenizer of a GGUF file gives what the tokenizer.json that
// it was made of gives, which TestVectors holds to the tokenizers library.
func TestGGUFAsFile(t *testing.T) {
	texts := testStrings(t)
	for name, pre := range map[string]string{"gpt2": "gpt-2", "llama3": "llama3", "qwen2": "qwen2", "tekken": "tekken"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := loadGzip(t, "testdata/"+name+".json.gz")
			got, err := LoadGGUF(with(ggufOf(t, name, pre), nil))
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range texts {
				if raceDetector && i%10 != 0 || strings.Contains(s, "mask>") {
					continue // a GGUF file does not say that <mask> takes the spaces before it
				}
				for _, o := range []EncodeOptions{{}, {ParseSpecial: true}} {
					a, b := got.Encode(s, o), want.Encode(s, o)
					if !slices.Equal(a, b) {
						t.Fatalf("%q: %v; want %v", s, a, b)
					}
					if x, y := got.Decode(a, true), want.Decode(a, true); x != y {
						t.Fatalf("%q decodes to %q; want %q", s, x, y)
					}
				}
			}
		})
	}
}

// idsDigest digests what gguf_vectors.py digests.
func idsDigest(tok *Tokenizer, texts []string) string {
	h := sha256.New()
	for _, s := range texts {
		if !utf8.ValidString(s) || !norm.NFC.IsNormalString(s) || strings.ContainsAny(s, "\ufffd\x00") {
			continue
		}
		ids := tok.Encode(s, EncodeOptions{})
		_ = binary.Write(h, binary.LittleEndian, uint32(len(ids)))
		_ = binary.Write(h, binary.LittleEndian, ids)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// TestGGUFAround: what stands around a text, and how it comes back.
func TestGGUFAround(t *testing.T) {
	f := func(values map[string]gguf.Value, changes map[string]gguf.Value, first, last string) {
		t.Helper()
		tok, err := LoadGGUF(with(values, changes))
		if err != nil {
			t.Fatal(err)
		}
		ids := tok.Encode("the engine", EncodeOptions{AddSpecial: true})
		if got := tok.Token(ids[0]); first != "" && got != first {
			t.Errorf("%v: the first token is %q; want %q", changes, got, first)
		}
		if got := tok.Token(ids[len(ids)-1]); last != "" && got != last {
			t.Errorf("%v: the last token is %q; want %q", changes, got, last)
		}
		if first == "" && tok.IsSpecial(ids[0]) {
			t.Errorf("%v: %q was put before the text", changes, tok.Token(ids[0]))
		}
		if got := tok.Decode(ids, true); got != "the engine" {
			t.Errorf("%v: it decodes to %q", changes, got)
		}
	}
	pieces, spelled := ggufPieces(t), ggufBytes(t)
	f(pieces, nil, "<s>", "")
	f(pieces, map[string]gguf.Value{"add_eos_token": true}, "<s>", "</s>")
	f(pieces, map[string]gguf.Value{"add_bos_token": false}, "", "")
	f(pieces, map[string]gguf.Value{"add_space_prefix": false}, "<s>", "")
	f(pieces, gemmaOf(pieces), "<s>", "")
	f(spelled, nil, "", "")
	f(spelled, map[string]gguf.Value{"pre": "qwen2", "bos_token_id": uint32(3)}, "", "")
	special := uint32(slices.Index(spelled["tokenizer.ggml.token_type"].([]int32), ggufControl))
	name := spelled["tokenizer.ggml.tokens"].([]string)[special]
	f(spelled, map[string]gguf.Value{"pre": "llama-bpe", "bos_token_id": special}, name, "")
	f(spelled, map[string]gguf.Value{"add_bos_token": true, "bos_token_id": special}, name, "")

	// Control tokens in what a user wrote stay text.
	tok, err := LoadGGUF(with(spelled, nil))
	if err != nil {
		t.Fatal(err)
	}
	if ids := tok.Encode(name, EncodeOptions{}); slices.Contains(ids, int32(special)) {
		t.Errorf("%q in a text became a control token", name)
	}
	if ids := tok.Encode(name, EncodeOptions{ParseSpecial: true}); !slices.Equal(ids, []int32{int32(special)}) {
		t.Errorf("%q became %v; want %d", name, ids, special)
	}
}

// TestGGUFRefuses: cases 96 to 99 of the attack list, and what else is wrong or
// not supported.
func TestGGUFRefuses(t *testing.T) {
	f := func(values map[string]gguf.Value, key string, value gguf.Value, want string) {
		t.Helper()
		_, err := LoadGGUF(with(values, map[string]gguf.Value{key: value}))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "tokenizer.json") {
			t.Errorf("%s: got %v; want an error with %q", key, err, want)
		}
	}
	spelled, pieces := ggufBytes(t), ggufPieces(t)
	tokens := spelled["tokenizer.ggml.tokens"].([]string)
	f(spelled, "model", "bert", `tokenizer.ggml.model "bert" is not supported; supported are gpt2 and llama`)
	f(spelled, "model", nil, `tokenizer.ggml.model "" is not supported`)
	f(spelled, "pre", "viking", `tokenizer.ggml.pre "viking" is not supported; supported are deepseek-r1-qwen, default, gpt-2, llama-bpe`)
	f(spelled, "tokens", nil, "tokenizer.ggml.tokens has 0 entries")
	f(spelled, "tokens", "x", "tokenizer.ggml.tokens is of type string")
	f(spelled, "tokens", append(slices.Clone(tokens), "more"), "tokenizer.ggml.token_type has")
	f(spelled, "tokens", append(slices.Clone(tokens[:len(tokens)-1]), tokens[0]), "as is tokenizer.ggml.tokens[0]")
	f(spelled, "tokens", append(slices.Clone(tokens[:len(tokens)-1]), "\xff"), "is not UTF-8")
	f(spelled, "tokens", append(slices.Clone(tokens[:len(tokens)-1]), strings.Repeat("x", 1<<20)), "at most")
	f(spelled, "token_type", slices.Repeat([]int32{9}, len(tokens)), "tokenizer.ggml.token_type[0] is 9")
	f(spelled, "merges", nil, "tokenizer.ggml.merges is missing")
	f(spelled, "merges", []string{"a b c"}, "tokenizer.ggml.merges[0] is")
	f(spelled, "merges", []string{"nosuch token"}, "tokenizer.ggml.merges[0]")
	f(spelled, "add_bos_token", true, "tokenizer.ggml.bos_token_id is -1")
	f(spelled, "add_bos_token", uint32(1), "want a truth value")
	f(pieces, "scores", nil, "tokenizer.ggml.scores has 0 entries")
	f(pieces, "bos_token_id", uint32(1<<30), "tokenizer.ggml.bos_token_id is 1073741824")
	f(pieces, "precompiled_charsmap", []uint8{1}, "does not go with")
	long := slices.Clone(pieces["tokenizer.ggml.tokens"].([]string))
	long[len(long)-1] = strings.Repeat("x", 300)
	f(pieces, "tokens", long, "has 300 bytes; at most 256")

	// Without tokens of single bytes, an unknown character is the unknown token.
	kinds := slices.Clone(pieces["tokenizer.ggml.token_type"].([]int32))
	bare := slices.Clone(pieces["tokenizer.ggml.tokens"].([]string))
	for i, kind := range kinds {
		if kind == ggufByte {
			kinds[i], bare[i] = ggufUnused, "unused "+bare[i]
		}
	}
	tok, err := LoadGGUF(with(pieces, map[string]gguf.Value{"tokens": bare, "token_type": kinds}))
	if err != nil {
		t.Fatal(err)
	}
	if ids := tok.Encode("the\U000f0000", EncodeOptions{}); ids[len(ids)-1] != 0 {
		t.Errorf("an unknown character became %v; want 0 at the end", ids)
	}
}

// FuzzGGUF: whatever the lists say, a vocabulary is refused or can encode.
func FuzzGGUF(f *testing.F) {
	f.Add("a b ab <s>", "a b", []byte{1, 1, 1, 3}, "abba", true)
	f.Add("<unk> a b ab ▁", "a b", []byte{2, 1, 1, 1, 1}, "ab ab", false)
	f.Add("<unk> <0x41> A", "", []byte{2, 6, 1}, "AB", false)
	f.Fuzz(func(t *testing.T, tokens, merges string, kinds []byte, text string, spelled bool) {
		list := strings.Split(tokens, " ")
		types, scores := make([]int32, len(list)), make([]float32, len(list))
		for i := range list {
			types[i] = 1
			if i < len(kinds) {
				types[i], scores[i] = int32(kinds[i]&7), -float32(kinds[i]>>3)
			}
		}
		values := map[string]gguf.Value{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": list, "tokenizer.ggml.token_type": types,
			"tokenizer.ggml.scores": scores, "tokenizer.ggml.bos_token_id": uint32(0)}
		if spelled {
			values["tokenizer.ggml.model"], values["tokenizer.ggml.merges"] = "gpt2", strings.Split(merges, ",")
		}
		tok, err := LoadGGUF(&gguf.File{Values: values})
		if err != nil {
			return
		}
		ids := tok.Encode(text, EncodeOptions{AddSpecial: true, ParseSpecial: true})
		for _, id := range ids {
			if id < 0 || int(id) >= tok.Size() {
				t.Fatalf("id %d of %d", id, tok.Size())
			}
		}
		tok.Decode(ids, true)
	})
}

package launch

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"roundhouse/worker/gguf"
)

// An attack is a model's folder, or file, that is not what it should be.
type attack struct {
	name  string            // as the list of attacks has it
	file  string            // that the error must name
	want  string            // what else the error says
	spoil func(path string) // does it, in a copy of the demonstration model; path is that of file
}

// safetensors is a file of a header and some bytes of data.
func safetensors(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func write(data []byte) func(string) {
	return func(path string) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			panic(err)
		}
	}
}

// edit replaces text of a file.
func edit(old, by string) func(string) {
	return func(path string) {
		data, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		if !bytes.Contains(data, []byte(old)) {
			panic(path + " does not have " + old)
		}
		write(bytes.Replace(data, []byte(old), []byte(by), 1))(path)
	}
}

// in makes a file of the same folder instead.
func in(name string, spoil func(string)) func(string) {
	return func(path string) { spoil(filepath.Join(filepath.Dir(path), name)) }
}

func both(a, b func(string)) func(string) { return func(path string) { a(path); b(path) } }

func remove(path string) {
	if err := os.Remove(path); err != nil {
		panic(err)
	}
}

func tensor(fields string) []byte { return safetensors(`{"a":{`+fields+`}}`, 8) }

// weightAttacks are cases 81 to 92 of the list of attacks (F).
func weightAttacks() []attack {
	const st, index = "model.safetensors", "model.safetensors.index.json"
	one := `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
	length := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	nan := func(path string) {
		data, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		binary.LittleEndian.PutUint16(data[len(data)-8:], 0x7fc0)
		write(data)(path)
	}
	return []attack{
		{"81 header of 100 000 001 bytes", st, "header too large", write(append(length(100_000_001), one...))},
		{"81 header of 2^63 bytes", st, "header too large", write(append(length(1<<63), one...))},
		{"81 header longer than the file", st, "header too large", write(append(length(4096), one...))},
		{"82 header of 0 bytes", st, "header too small", write(append(length(0), one...))},
		{"82 header of 1 byte", st, "header too small", write(append(length(1), one...))},
		{"82 header no object", st, "not with '{'", write(safetensors(`[]`, 0))},
		{"83 header not UTF-8", st, "not UTF-8", write(safetensors("{\"a\xff\":1}", 0))},
		{"83 header no JSON", st, "invalid character", write(safetensors(`{"a" 1}`, 0))},
		{"83 key twice", st, "stands twice", write(safetensors(one[:len(one)-1]+","+one[1:], 8))},
		{"83 metadata no string", st, "want a string", write(safetensors(`{"__metadata__":{"a":1}}`, 0))},
		{"84 begin behind end", st, "begin ≤ end", write(tensor(`"dtype":"F32","shape":[1],"data_offsets":[8,4]`))},
		{"84 past the end", st, "cut short", write(tensor(`"dtype":"F32","shape":[3],"data_offsets":[0,12]`))},
		{"84 hole", st, "leave a hole", write(tensor(`"dtype":"F32","shape":[1],"data_offsets":[4,8]`))},
		{"84 overlap", st, "inside the tensor before it", write(safetensors(one[:len(one)-1]+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4))},
		{"84 polyglot", st, "belong to none", write(safetensors(one, 5))},
		{"85 shape is not the length", st, "takes 8 bytes, but data_offsets span 4", write(tensor(`"dtype":"F32","shape":[2],"data_offsets":[0,4]`))},
		{"85 product beyond 2^64", st, "below 2^63", write(tensor(`"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]`))},
		{"85 rank 1000", st, "more than 32 numbers", write(tensor(`"dtype":"F32","shape":[` + strings.Repeat("1,", 999) + `1],"data_offsets":[0,4]`))},
		{"85 negative dimension", st, "want an integer from 0", write(tensor(`"dtype":"F32","shape":[-1],"data_offsets":[0,4]`))},
		{"85 F4 odd", st, "whole bytes", write(tensor(`"dtype":"F4","shape":[3],"data_offsets":[0,2]`))},
		{"86 unknown dtype", st, "unknown type F99", write(tensor(`"dtype":"F99","shape":[1],"data_offsets":[0,4]`))},
		{"87 file cut short", st, "cut short", func(path string) {
			if err := os.Truncate(path, 1<<20); err != nil {
				panic(err)
			}
		}},
		{"87 shard missing", "x.safetensors", "cannot read", in(index, write([]byte(`{"weight_map":{"a":"x.safetensors"}}`)))},
		{"87 tensor elsewhere than the index says", index, "should be in", in(index, write([]byte(`{"weight_map":{"nosuch":"model.safetensors"}}`)))},
		{"87 tensor in two shards", "x.safetensors", "and in y.safetensors", both(in(st, remove), both(in("y.safetensors", write(safetensors(one, 4))), write(safetensors(one, 4))))},
		{"87 shard ../../etc/passwd", index, "is not the name of a", in(index, write([]byte(`{"weight_map":{"a":"../../etc/passwd"}}`)))},
		{"89 link to a device", st, "not a regular file", both(remove, func(path string) {
			if err := os.Symlink("/dev/zero", path); err != nil {
				panic(err)
			}
		})},
		{"89 FIFO", st, "not a regular file", both(remove, fifo)},
		{"89 folder", st, "not a regular file", both(remove, func(path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				panic(err)
			}
		})},
		{"89 config.json a FIFO", "config.json", "not a regular file", both(remove, fifo)},
		{"89 tokenizer.json a FIFO", "tokenizer.json", "not a regular file", both(remove, fifo)},
		{"89 chat_template.jinja a FIFO", "chat_template.jinja", "not a regular file", fifo},
		{"91 NaN weight", st, "is not a finite number", nan},
		{"92 pickle", "pytorch_model.bin", "is a pickle", both(in(st, remove), write([]byte{0x80, 2}))},
	}
}

func fifo(path string) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		panic(err)
	}
}

// textAttacks are cases 93 (F) and 95 to 101 (G), as far as they are refused at
// start.
func textAttacks() []attack {
	const config, tok = "config.json", "tokenizer.json"
	field := func(name string, value any) func(string) {
		return func(path string) {
			data, err := os.ReadFile(path)
			if err != nil {
				panic(err)
			}
			var all map[string]any
			if err := json.Unmarshal(data, &all); err != nil {
				panic(err)
			}
			all[name] = value
			if data, err = json.Marshal(all); err != nil {
				panic(err)
			}
			write(data)(path)
		}
	}
	return []attack{
		{"93 vocabulary of 2^40", config, "vocab_size is 1099511627776", field("vocab_size", 1<<40)},
		{"93 no layers", config, "num_hidden_layers is 0", field("num_hidden_layers", 0)},
		{"93 10^9 layers", config, "num_hidden_layers is 1000000000", field("num_hidden_layers", 1_000_000_000)},
		{"93 heads that do not divide", config, "is no multiple of", field("num_key_value_heads", 3)},
		{"93 RoPE base 10^300", config, "rope_theta is 1e+300", field("rope_theta", 1e300)},
		{"93 code of the folder's own", config, `architecture "Evil" is not supported`, both(field("architectures", []string{"Evil"}), field("auto_map", map[string]string{"AutoModelForCausalLM": "evil.Evil"}))},
		{"93 no JSON", config, "unexpected end of JSON", write([]byte(`{"a":`))},
		{"96 merge of a missing token", tok, "all three must be in model.vocab", edit(`"merges":`, `"merges":[["nosuch","token"]],"x":`)},
		{"97 added token of 1 MiB", tok, "at most 65536", edit(`<|im_start|>`, strings.Repeat("x", 1<<20))},
		{"98 tokenizer.json of 300 MB", tok, "at most 268435456 are read", func(path string) {
			if err := os.Truncate(path, 300_000_000); err != nil {
				panic(err)
			}
		}},
		{"98 nesting of 10 000", tok, "nested deeper", write([]byte(strings.Repeat("[", 10_000)))},
		{"100 template that does not parse", "chat template", "line 1", in("chat_template.jinja", write([]byte("{% for %}")))},
	}
}

// ggufAttacks is case 90; package gguf has the others of the header's fields.
func ggufAttacks() []attack {
	file := func(values, tensors uint64) []byte {
		b := binary.LittleEndian.AppendUint32([]byte("GGUF"), 3)
		return append(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, tensors), values), make([]byte, 64)...)
	}
	const g = "m.gguf"
	return []attack{
		{"90 bad magic", g, `not with "GGUF"`, write(bytes.Repeat([]byte("x"), 64))},
		{"90 big-endian", g, "big-endian", write(append([]byte("GGUF\x00\x00\x00\x03"), make([]byte, 64)...))},
		{"90 n_kv 2^63", g, "9223372036854775808 values", write(file(1<<63, 0))},
		{"90 n_tensors 2^63", g, "9223372036854775808 tensors", write(file(0, 1<<63))},
		{"90 not known", g, `general.architecture "evil" is not supported`, write(gguf.Encode(map[string]gguf.Value{"general.architecture": "evil"}, nil))},
		{"90 NaN in the header", g, "want a finite number", write(gguf.Encode(map[string]gguf.Value{"general.architecture": "llama", "llama.block_count": uint32(1), "llama.context_length": uint32(8),
			"llama.embedding_length": uint32(8), "llama.feed_forward_length": uint32(8), "llama.attention.head_count": uint32(1), "llama.attention.layer_norm_rms_epsilon": float32(math.NaN())}, nil))},
		{"89 GGUF a FIFO", g, "not a regular file", fifo},
	}
}

// TestAttacks starts a worker on what a stranger could have made: each is
// refused with the file and what is wrong there, and nothing is left behind
// (goleak). Case 88 is TestCutWhileMapped of package weights.
func TestAttacks(t *testing.T) {
	var list []attack
	list = append(append(append(list, weightAttacks()...), textAttacks()...), ggufAttacks()...)
	for _, a := range list {
		t.Run(a.name, func(t *testing.T) {
			dir := copyDemo(t)
			path := filepath.Join(dir, a.file)
			a.spoil(path)
			model := dir
			if strings.HasSuffix(a.file, ".gguf") {
				model = path
			}
			o, err := ParseServe([]string{"--model", model}, noEnv)
			if err != nil {
				t.Fatal(err)
			}
			w, err := Open(o, quiet)
			if err == nil {
				_ = w.Close()
			}
			if err == nil || !strings.Contains(err.Error(), a.file) || !strings.Contains(err.Error(), a.want) {
				t.Errorf("got %v; want an error of %s with %q", err, a.file, a.want)
			}
		})
	}
}

// TestAttackChecksum is case 94.
func TestAttackChecksum(t *testing.T) {
	dir := copyDemo(t)
	write([]byte(strings.Repeat("0", 64) + "  model.safetensors\n"))(filepath.Join(dir, "SHA256SUMS"))
	o, err := ParseServe([]string{"--model", dir, "--verify-weights"}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o, quiet); err == nil || !strings.Contains(err.Error(), "model.safetensors: its SHA-256 is") {
		t.Errorf("got %v; want: another checksum", err)
	}
}

// TestAttacksServed are cases that a worker starts with, and that must not
// cost more than the request.
func TestAttacksServed(t *testing.T) {
	serve := func(t *testing.T, file string, spoil func(string)) string {
		t.Helper()
		dir := copyDemo(t)
		spoil(filepath.Join(dir, file))
		return demoServer(t, "--model", dir).URL
	}
	chat := map[string]any{"messages": []map[string]string{{"role": "user", "content": "copy a"}}, "max_tokens": 2}
	refused := func(t *testing.T, url string, want string) {
		t.Helper()
		if err := postJSON(url+"/v1/chat/completions", chat, &struct{}{}); err == nil || !strings.Contains(err.Error(), "status 400") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want status 400 with %q", err, want)
		}
		// The worker is as it was.
		if err := postJSON(url+"/v1/completions", map[string]any{"prompt": "a", "max_tokens": 2}, &struct{}{}); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
	for name, c := range map[string]struct{ template, want string }{
		"100 ten to the ninth turns":      {"{% for i in range(10**9) %}{% endfor %}", "template"},
		"100 text times ten to the ninth": {"{{ 'x' * 10**9 }}", "template"},
		"100 recursion":                   {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "template"},
		"100 a walk to the host":          {"{{ ''.__class__.__mro__[1].__subclasses__() }}", "template"},
		"101 raise_exception":             {"{{ raise_exception('not like this') }}", "not like this"},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, serve(t, "chat_template.jinja", write([]byte(c.template))), c.want)
		})
	}
	t.Run("101 no template", func(t *testing.T) {
		refused(t, serve(t, "tokenizer_config.json", write([]byte(`{}`))), "chat template")
	})
	t.Run("102 template of the request", func(t *testing.T) {
		body := map[string]any{"messages": chat["messages"], "chat_template": "{{ 1 }}"}
		if err := postJSON(demoServer(t).URL+"/v1/chat/completions", body, &struct{}{}); err == nil || !strings.Contains(err.Error(), "untrusted") {
			t.Errorf("got %v; want: untrusted", err)
		}
	})
	t.Run("95 catastrophic pattern", func(t *testing.T) {
		url := serve(t, "tokenizer.json", edit(`(?i:'s|'t|'re|'ve|'m|'ll|'d)|`, `(a+)+$|(?i:'s|'t|'re|'ve|'m|'ll|'d)|`))
		if err := postJSON(url+"/tokenize", map[string]any{"prompt": strings.Repeat("a", 20_000) + "!"}, &struct{}{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("96 id beyond the model's vocabulary", func(t *testing.T) {
		url := serve(t, "tokenizer.json", edit(`"added_tokens": [`, `"added_tokens": [{"id":1600,"content":"<|beyond|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":false},`))
		err := postJSON(url+"/v1/completions", map[string]any{"prompt": "a <|beyond|>", "max_tokens": 2}, &struct{}{})
		if err == nil || !strings.Contains(err.Error(), "status 400") {
			t.Errorf("got %v; want status 400", err)
		}
		if err := postJSON(url+"/v1/completions", map[string]any{"prompt": "a", "max_tokens": 2}, &struct{}{}); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
	t.Run("97 added token of no text", func(t *testing.T) {
		url := serve(t, "tokenizer.json", edit(`"content": "<|endoftext|>"`, `"content": ""`))
		if err := postJSON(url+"/v1/completions", map[string]any{"prompt": "a", "max_tokens": 2}, &struct{}{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("93 code of the folder's own is not read", func(t *testing.T) {
		url := serve(t, "config.json", edit(`{`, `{"auto_map":{"AutoModelForCausalLM":"evil.Evil"},`))
		if err := postJSON(url+"/v1/completions", map[string]any{"prompt": "a", "max_tokens": 2}, &struct{}{}); err != nil {
			t.Error(err)
		}
	})
}

package model

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
	"roundhouse/worker/gguf"
)

// plainGGUF is the model of testdata/llama.json, without scaling of RoPE, as a
// GGUF file of floats.
func plainGGUF(t testing.TB) (config map[string]any, tensors []fixtureTensor, values map[string]gguf.Value, contents []gguf.Content) {
	t.Helper()
	f := &fixture{}
	readJSON(t, "llama", f)
	config = maps.Clone(f.Config)
	config["rope_scaling"] = nil
	integer := func(field string) uint32 { return uint32(config[field].(float64)) }
	heads, kvHeads := int(integer("num_attention_heads")), int(integer("num_key_value_heads"))
	values = map[string]gguf.Value{
		"general.architecture": "llama", "general.file_type": uint32(0),
		"llama.block_count": integer("num_hidden_layers"), "llama.context_length": integer("max_position_embeddings"),
		"llama.embedding_length": integer("hidden_size"), "llama.feed_forward_length": integer("intermediate_size"),
		"llama.attention.head_count": uint32(heads), "llama.attention.head_count_kv": uint32(kvHeads),
		"llama.attention.layer_norm_rms_epsilon": float32(config["rms_norm_eps"].(float64)),
		"llama.rope.freq_base":                   float32(config["rope_theta"].(float64)),
	}
	for _, x := range f.Tensors {
		c := gguf.Content{Name: ggufName(x.name), Type: gguf.F32, Shape: x.shape, Data: x.fill()}
		switch {
		case strings.Contains(x.name, "q_proj"):
			c.Data = pairRows(c.Data, x.shape[0], heads)
		case strings.Contains(x.name, "k_proj"):
			c.Data = pairRows(c.Data, x.shape[0], kvHeads)
		}
		contents = append(contents, c)
	}
	return config, f.Tensors, values, contents
}

// pairRows is what a converter does to queries and keys: of each head, row i of
// the upper half is followed by row i of the lower one.
func pairRows(data []byte, rows, heads int) []byte {
	var out []byte
	size, dim := len(data)/rows, rows/heads
	for h := range heads {
		for i := range dim / 2 {
			for _, r := range []int{h*dim + i, h*dim + dim/2 + i} {
				out = append(out, data[r*size:(r+1)*size]...)
			}
		}
	}
	return out
}

// TestGGUFIsFolder: a GGUF file of floats gives the same logits as the folder
// that it was made of, to the last bit.
func TestGGUFIsFolder(t *testing.T) {
	config, tensors, values, contents := plainGGUF(t)
	ids := []int32{5, 1, 60, 33, 2, 71, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 3, 3, 3}
	of := func(m *Model) [][]float32 { return newRunner(t, newCPU(t), m, len(ids)).logits(t, ids, len(ids)) }
	want := of(openFixture(t, config, tensors))
	if d := difference(of(openGGUFFixture(t, values, contents)), want); d != 0 {
		t.Errorf("logits differ by %.2g of the greatest from those of the folder", d)
	}
	// Without the order of rows undone, they would not be near.
	for i := range contents {
		if strings.Contains(contents[i].Name, "attn_k") {
			contents[i].Data = slices.Concat(contents[i].Data[len(contents[i].Data)/2:], contents[i].Data[:len(contents[i].Data)/2])
		}
	}
	if d := difference(of(openGGUFFixture(t, values, contents)), want); d < 100*tolerance {
		t.Errorf("logits of reordered rows differ by %.2g only", d)
	}
}

// TestHostileGGUF: what a header can say that is not so, or is not known.
func TestHostileGGUF(t *testing.T) {
	_, _, values, contents := plainGGUF(t)
	try := func(want string, values map[string]gguf.Value, contents []gguf.Content) {
		t.Helper()
		_, err := OpenGGUFFS(fstest.MapFS{"m.gguf": {Data: gguf.Encode(values, contents)}}, "m.gguf")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "m.gguf") {
			t.Errorf("got %v; want an error of m.gguf with %q", err, want)
		}
	}
	f := func(key string, value gguf.Value, want string) {
		t.Helper()
		changed := maps.Clone(values)
		if changed[key] = value; value == nil {
			delete(changed, key)
		}
		try(want, changed, contents)
	}
	tensor := func(want string, change func(*gguf.Content) bool) {
		t.Helper()
		var changed []gguf.Content
		for _, c := range contents {
			if change(&c) {
				changed = append(changed, c)
			}
		}
		try(want, values, changed)
	}

	f("general.architecture", "phi3", `general.architecture "phi3" is not supported; supported in GGUF are: llama, qwen2, qwen3`)
	f("general.architecture", nil, `general.architecture "" is not supported`)
	f("general.architecture", uint32(1), "general.architecture is of type uint32")
	f("general.type", "adapter", `general.type is "adapter"; want a model`)
	f("split.count", uint32(3), "this is one of 3 files of a model; give the first")
	f("split.count", uint32(1e9), "split.count is 1000000000; want at most 65535")
	f("llama.block_count", nil, "llama.block_count is missing")
	f("llama.block_count", "4", "llama.block_count is of type string; want an integer")
	f("llama.block_count", uint32(0), "llama.block_count is 0 or absent; want 1 to 1024")
	f("llama.block_count", uint32(1e9), "llama.block_count is 1000000000; want 1 to 1024")
	f("llama.block_count", uint64(math.MaxUint64), "want at most 2^63-1")
	f("llama.block_count", uint32(9), "blk.8.")
	f("llama.attention.head_count", uint32(0), "llama.attention.head_count is 0")
	f("llama.attention.head_count_kv", []int32{1, 2}, "head_count_kv is of type []int32; want an integer")
	f("llama.attention.head_count_kv", uint32(3), "is no multiple of llama.attention.head_count_kv 3")
	f("llama.attention.layer_norm_rms_epsilon", float32(math.NaN()), "want a finite number")
	f("llama.attention.layer_norm_rms_epsilon", float32(-1), "layer_norm_rms_epsilon is -1")
	f("llama.rope.freq_base", float32(1e30), "llama.rope.freq_base is 1.00000001504746")
	f("llama.embedding_length", uint32(1<<30), "llama.embedding_length is 1073741824")
	f("llama.context_length", int32(-5), "llama.context_length is -5")
	f("llama.expert_count", uint32(8), "llama.expert_count is 8; this architecture is known with 0")
	f("llama.attention.value_length", uint32(9), "llama.attention.value_length is 9")
	f("llama.attention.sliding_window", uint32(9), "llama.attention.sliding_window is not known")
	f("llama.rope.scaling.type", "longrope", `llama.rope.scaling.type "longrope" is not supported`)
	f("tokenizer.ggml.eos_token_id", uint32(1<<20), "eos_token_id is 1048576")
	f("tokenizer.ggml.bos_token_id", int32(-7), "bos_token_id is -7")
	f("tokenizer.ggml.tokens", make([]string, 1000), "tokenizer.ggml.tokens has 1000 tokens; token_embd.weight has 72")
	f("general.sampling.temp", float32(-2), "temperature is -2")

	tensor("token_embd.weight is missing", func(c *gguf.Content) bool { return c.Name != "token_embd.weight" })
	tensor("blk.1.ffn_up.weight is missing", func(c *gguf.Content) bool { return c.Name != "blk.1.ffn_up.weight" })
	try(`tensor "blk.1.extra" is not known`, values, append(slices.Clone(contents), gguf.Content{Name: "blk.1.extra", Type: gguf.F32, Shape: []int{1}, Data: make([]byte, 4)}))
	tensor("blk.0.attn_k.weight has shape", func(c *gguf.Content) bool {
		if c.Name == "blk.0.attn_k.weight" {
			c.Shape = []int{c.Shape[1], c.Shape[0]}
		}
		return true
	})
	rope := func(shape int, value float32) []gguf.Content {
		data := []byte{}
		for range shape {
			data = append(data, (&fixtureTensor{name: "x", shape: []int{1}, base: value}).fill()...)
		}
		return append(slices.Clone(contents), gguf.Content{Name: "rope_freqs.weight", Type: gguf.F32, Shape: []int{shape}, Data: data})
	}
	try("rope_freqs.weight is F32 of shape [3]", values, rope(3, 1))
	try("rope_freqs.weight: element 0 is 0", values, rope(8, 0))
	try("rope_freqs.weight: element 0 is NaN", values, rope(8, float32(math.NaN())))
	try("rope_freqs.weight: element 0 is -1", values, rope(8, -1))
}

// TestGGUFNotFinite is case 91: a scale that is no number.
func TestGGUFNotFinite(t *testing.T) {
	f := &ggufFixture{}
	readJSON(t, "gguf_llama", f)
	for kind, at := range map[string]int{"Q8_0": 1, "Q4_0": 1, "Q4_1": 3, "Q5_0": 1, "Q5_1": 3, "Q2_K": 83, "Q3_K": 109, "Q4_K": 3, "Q5_K": 3,
		"Q6_K": 209, "IQ4_NL": 1, "IQ4_XS": 1, "F16": 1, "BF16": 1, "F32": 3} {
		var contents []gguf.Content
		damaged := ""
		for _, x := range f.Tensors {
			c := x.content()
			if x.kind == kind && damaged == "" {
				damaged, c.Data[at], c.Data[at-1] = x.name, 0x7f, 0xff
			}
			contents = append(contents, c)
		}
		m := ggufModel(t, f.Values, contents)
		specs := m.KVGroups(16, kernels.BF16)
		specs[0].Blocks = 1
		be := ref.New()
		_, err := m.Build(be, BuildOptions{Format: kernels.FormatBF16, KV: specs})
		if err == nil || !strings.Contains(err.Error(), damaged+": element 0 is not a finite number") {
			t.Errorf("%s: got %v; want: %s is not finite", kind, err, damaged)
		}
		if err := be.Close(); err != nil {
			t.Error(err)
		}
	}
}

// FuzzGGUF: whatever the header says, opening ends, with an error or a model
// that can say what it would take.
func FuzzGGUF(f *testing.F) {
	_, _, values, contents := plainGGUF(f)
	whole := gguf.Encode(values, contents)
	f.Add(uint16(0), []byte{})
	f.Add(uint16(60), []byte{0xff, 0xff, 0xff, 0x7f})
	f.Add(uint16(400), []byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, at uint16, change []byte) {
		file := slices.Clone(whole)
		copy(file[min(int(at), len(file)):], change)
		m, err := OpenGGUFFS(fstest.MapFS{"m.gguf": {Data: file}}, "m.gguf")
		if err != nil {
			return
		}
		defer m.Close()
		if n := m.WeightBytes(kernels.FormatF32); n < 1 {
			t.Fatalf("%d bytes of weights", n)
		}
		_, _ = m.Plan(planOptions(1 << 24))
	})
}

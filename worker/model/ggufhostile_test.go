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

// ggufRefused holds that a file with a key changed, or with its tensors changed by
// one function, is refused with a sentence; nil as a value takes the key away.
func ggufRefused(t *testing.T, values map[string]gguf.Value, contents []gguf.Content) (key func(string, gguf.Value, string), tensors func(string, func([]gguf.Content) []gguf.Content)) {
	try := func(want string, values map[string]gguf.Value, contents []gguf.Content) {
		t.Helper()
		_, err := OpenGGUFFS(fstest.MapFS{"m.gguf": {Data: gguf.Encode(values, contents)}}, "m.gguf")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "m.gguf") {
			t.Errorf("got %v; want an error of m.gguf with %q", err, want)
		}
	}
	key = func(key string, value gguf.Value, want string) {
		t.Helper()
		changed := maps.Clone(values)
		if changed[key] = value; value == nil {
			delete(changed, key)
		}
		try(want, changed, contents)
	}
	tensors = func(want string, change func([]gguf.Content) []gguf.Content) {
		t.Helper()
		try(want, values, change(slices.Clone(contents)))
	}
	return key, tensors
}

// TestHostileExperts: what a header can say of a mixture of experts.
func TestHostileExperts(t *testing.T) {
	values, contents := plainGGUF(t, rowOf(t, "Qwen3MoeForCausalLM"))
	key, tensors := ggufRefused(t, values, contents)
	key("qwen3moe.expert_count", nil, "qwen3moe.expert_count is missing")
	key("qwen3moe.expert_count", uint32(0), "qwen3moe.expert_count is 0; want 1 or more")
	key("qwen3moe.expert_count", uint32(5), "blk.0.ffn_gate_inp.weight has shape [6 64]; want [5 64]")
	key("qwen3moe.expert_count", uint32(1e9), "2 of 1000000000 experts")
	key("qwen3moe.expert_count", int32(-6), "qwen3moe.expert_count is -6; want 1 or more")
	key("qwen3moe.expert_used_count", nil, "qwen3moe.expert_used_count is missing")
	key("qwen3moe.expert_used_count", uint32(7), "7 of 6 experts")
	key("qwen3moe.expert_used_count", uint32(0), "qwen3moe.expert_used_count is 0; want 1 or more")
	key("qwen3moe.expert_feed_forward_length", uint32(33), "blk.0.ffn_gate_exps.weight has shape [6 32 64]; want [6 33 64]")
	key("qwen3moe.expert_feed_forward_length", uint32(1<<31), "experts with 2147483648 columns")
	key("qwen3moe.expert_weights_scale", float32(2), "qwen3moe.expert_weights_scale is not known")
	key("qwen3moe.expert_gating_func", uint32(2), "qwen3moe.expert_gating_func is not known")
	at := func(name string) int {
		return slices.IndexFunc(contents, func(c gguf.Content) bool { return c.Name == name })
	}
	tensors("blk.1.ffn_up_exps.weight is missing", func(c []gguf.Content) []gguf.Content {
		i := at("blk.1.ffn_up_exps.weight")
		return slices.Delete(c, i, i+1)
	})
	tensors("blk.1.ffn_down_exps.weight has shape [6 32 64]; want [6 64 32]", func(c []gguf.Content) []gguf.Content {
		c[at("blk.1.ffn_down_exps.weight")].Shape = []int{6, 32, 64}
		return c
	})
	tensors("blk.1.ffn_down_exps.weight has shape [384 32]; want [6 64 32]", func(c []gguf.Content) []gguf.Content {
		c[at("blk.1.ffn_down_exps.weight")].Shape = []int{384, 32}
		return c
	})
	tensors(`tensor "blk.0.ffn_gate.weight" is not known for architecture "qwen3moe"`, func(c []gguf.Content) []gguf.Content {
		return append(c, gguf.Content{Name: "blk.0.ffn_gate.weight", Type: gguf.F32, Shape: []int{1}, Data: make([]byte, 4)})
	})
	i := at("blk.2.ffn_gate_exps.weight")
	contents[i].Data = slices.Clone(contents[i].Data)
	copy(contents[i].Data[4*2050:], []byte{0, 0, 0xc0, 0x7f}) // of the second expert
	notFinite(t, openGGUFFixture(t, values, contents), "blk.2.ffn_gate_exps.weight: element 2050")
}

// TestHostileGemma: what a header can say of windows.
func TestHostileGemma(t *testing.T) {
	values, contents := plainGGUF(t, rowOf(t, "Gemma3ForCausalLM"))
	key, _ := ggufRefused(t, values, contents)
	key("gemma3.attention.sliding_window", nil, "gemma3.attention.sliding_window is missing")
	key("gemma3.attention.sliding_window", uint32(0), "gemma3.attention.sliding_window is 0; want 1 or more")
	key("gemma3.attention.sliding_window", uint32(1<<31), "gemma3.attention.sliding_window is 2147483648; want 0 to 67108864")
	key("gemma3.attention.sliding_window_pattern", uint32(0), "gemma3.attention.sliding_window_pattern is 0; want 1 or more")
	key("gemma3.attention.sliding_window_pattern", []int32{1, 0}, "gemma3.attention.sliding_window_pattern is of type []int32")
	key("gemma3.rope.freq_base_swa", float32(0), "gemma3.rope.freq_base_swa: gemma3.rope.freq_base is 0; want 1 to 1e+12")
	key("gemma3.rope.freq_base_swa", float32(-5), "gemma3.rope.freq_base_swa: gemma3.rope.freq_base is -5")
	key("gemma3.attn_logit_softcapping", float32(50), "gemma3.attn_logit_softcapping is not known")
	key("gemma3.attention.key_length", uint32(0), "blk.0.attn_q.weight has shape")
}

// notFinite holds that weights are refused that are no numbers.
func notFinite(t *testing.T, m *Model, want string) {
	t.Helper()
	specs := m.KVGroups(16, kernels.BF16)
	specs[0].Blocks = 1
	be := ref.New()
	_, err := m.Build(be, BuildOptions{Format: kernels.FormatBF16, KV: specs})
	if err == nil || !strings.Contains(err.Error(), want+" is not a finite number") {
		t.Errorf("got %v; want: %s is not finite", err, want)
	}
	if err := be.Close(); err != nil {
		t.Error(err)
	}
}

// TestHostileGGUF: what a header can say that is not so, or is not known.
func TestHostileGGUF(t *testing.T) {
	values, contents := plainGGUF(t, rowOf(t, "LlamaForCausalLM"))
	f, all := ggufRefused(t, values, contents)
	tensor := func(want string, change func(*gguf.Content) bool) {
		t.Helper()
		all(want, func(contents []gguf.Content) (changed []gguf.Content) {
			for _, c := range contents {
				if change(&c) {
					changed = append(changed, c)
				}
			}
			return changed
		})
	}

	f("general.architecture", "phi3", `general.architecture "phi3" is not supported; supported in GGUF are: gemma3, llama, qwen2, qwen3, qwen3moe`)
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
	f("llama.expert_count", uint32(8), "llama.expert_used_count is missing")
	f("llama.expert_count", "8", "llama.expert_count is of type string")
	f("llama.attention.value_length", uint32(9), "llama.attention.value_length is 9")
	f("llama.attention.sliding_window", uint32(9), "llama.attention.sliding_window is not known")
	f("llama.rope.scaling.type", "longrope", `llama.rope.scaling.type "longrope" is not supported`)
	f("tokenizer.ggml.eos_token_id", uint32(1<<20), "eos_token_id is 1048576")
	f("tokenizer.ggml.bos_token_id", int32(-7), "bos_token_id is -7")
	f("tokenizer.ggml.tokens", make([]string, 1000), "tokenizer.ggml.tokens has 1000 tokens; token_embd.weight has 72")
	f("general.sampling.temp", float32(-2), "temperature is -2")

	tensor("token_embd.weight is missing", func(c *gguf.Content) bool { return c.Name != "token_embd.weight" })
	tensor("blk.1.ffn_up.weight is missing", func(c *gguf.Content) bool { return c.Name != "blk.1.ffn_up.weight" })
	all(`tensor "blk.1.extra" is not known`, func(c []gguf.Content) []gguf.Content {
		return append(c, gguf.Content{Name: "blk.1.extra", Type: gguf.F32, Shape: []int{1}, Data: make([]byte, 4)})
	})
	tensor("blk.0.attn_k.weight has shape", func(c *gguf.Content) bool {
		if c.Name == "blk.0.attn_k.weight" {
			c.Shape = []int{c.Shape[1], c.Shape[0]}
		}
		return true
	})
	rope := func(want string, shape int, value float32) {
		t.Helper()
		data := []byte{}
		for range shape {
			data = append(data, (&fixtureTensor{name: "x", shape: []int{1}, base: value}).fill()...)
		}
		all(want, func(c []gguf.Content) []gguf.Content {
			return append(c, gguf.Content{Name: "rope_freqs.weight", Type: gguf.F32, Shape: []int{shape}, Data: data})
		})
	}
	rope("rope_freqs.weight is F32 of shape [3]", 3, 1)
	rope("rope_freqs.weight: element 0 is 0", 8, 0)
	rope("rope_freqs.weight: element 0 is NaN", 8, float32(math.NaN()))
	rope("rope_freqs.weight: element 0 is -1", 8, -1)
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
		notFinite(t, ggufModel(t, f.Values, contents), damaged+": element 0")
	}
}

// FuzzGGUF: whatever the header says, opening ends, with an error or a model
// that can say what it would take.
func FuzzGGUF(f *testing.F) {
	var wholes [][]byte
	for _, row := range architectures() {
		if row.gguf != nil {
			wholes = append(wholes, gguf.Encode(plainGGUF(f, row)))
		}
	}
	f.Add(uint16(0), []byte{})
	f.Add(uint16(60), []byte{0xff, 0xff, 0xff, 0x7f})
	f.Add(uint16(400), []byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, at uint16, change []byte) {
		for _, whole := range wholes {
			file := slices.Clone(whole)
			copy(file[min(int(at), len(file)):], change)
			m, err := OpenGGUFFS(fstest.MapFS{"m.gguf": {Data: file}}, "m.gguf")
			if err != nil {
				continue
			}
			if n := m.WeightBytes(kernels.FormatF32); n < 1 {
				t.Fatalf("%d bytes of weights", n)
			}
			_, _ = m.Plan(planOptions(1 << 24))
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

package model

import (
	"encoding/json"
	"maps"
	"math"
	"testing"
	"testing/fstest"

	"roundhouse/kernels"
	"roundhouse/worker/weights"
)

// published holds one model to its size and to its longest sequence.
func published(t *testing.T, arch string, billions float64, positions int, config map[string]any) {
	t.Helper()
	config = maps.Clone(config)
	config["architectures"] = []string{arch}
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{"config.json": {Data: data}, "model.safetensors": {Data: safetensors(nil)}}
	s, a, err := readSettings(fsys, nil)
	if err != nil {
		t.Fatalf("%s: %v", arch, err)
	}
	empty, err := weights.OpenFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]float64{}
	b := &binder{set: empty, quant: s.quant, bound: map[string]kernels.Weight{}}
	b.asked = func(p piece) {
		b.faulty = 0 // all are missing here; look on
		n := 1.0
		for _, d := range p.shape {
			n *= float64(d)
		}
		numbers[p.name] = n
	}
	g := newGraph(s, b, a.groups(s), nil)
	a.record(g)
	if a.tower != nil {
		a.tower(g)
	}
	if len(g.faults) > 0 {
		t.Errorf("%s: %v", arch, g.faults)
	}
	sum := 0.0
	for _, n := range numbers {
		sum += n / 1e9
	}
	if math.Abs(sum-billions) > 0.005*billions {
		t.Errorf("%s: %.3f billion numbers; want %.3f", arch, sum, billions)
	}
	if got := s.config(a, g.groups).MaxPositions; got != positions {
		t.Errorf("%s: %d positions; want %d", arch, got, positions)
	}
}

// TestPublished: with the numbers of published models, nothing is refused and
// the weights that are asked for add up to the size the model is known by.
func TestPublished(t *testing.T) {
	f := func(arch string, billions float64, positions int, config map[string]any) {
		t.Helper()
		published(t, arch, billions, positions, config)
	}
	type m = map[string]any
	decoder := func(vocab, hidden, inner, layers, heads, kv, positions int, more m) m {
		c := m{"vocab_size": vocab, "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
			"num_key_value_heads": kv, "max_position_embeddings": positions, "hidden_act": "silu", "rms_norm_eps": 1e-6, "torch_dtype": "bfloat16"}
		maps.Copy(c, more)
		return c
	}

	f("LlamaForCausalLM", 8.030, 131072, decoder(128256, 4096, 14336, 32, 32, 8, 131072, m{"rope_theta": 500000, "eos_token_id": []int{128001, 128008, 128009},
		"rope_scaling": m{"factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192, "rope_type": "llama3"}}))
	f("Qwen2ForCausalLM", 7.616, 131072, decoder(152064, 3584, 18944, 28, 28, 4, 32768, m{"rope_theta": 1e6, "use_sliding_window": false, "sliding_window": 131072,
		"rope_scaling": m{"type": "yarn", "factor": 4, "original_max_position_embeddings": 32768}}))
	f("Qwen3ForCausalLM", 0.596, 40960, decoder(151936, 1024, 3072, 28, 16, 8, 40960, m{"head_dim": 128, "rope_theta": 1e6, "tie_word_embeddings": true}))
	f("Qwen3MoeForCausalLM", 30.53, 40960, decoder(151936, 2048, 6144, 48, 32, 4, 40960, m{"head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8,
		"moe_intermediate_size": 768, "norm_topk_prob": true, "mlp_only_layers": []int{}}))
	f("MistralForCausalLM", 7.248, 32768, decoder(32768, 4096, 14336, 32, 32, 8, 32768, m{"sliding_window": nil, "rope_theta": 1e6}))
	f("MixtralForCausalLM", 46.70, 32768, decoder(32000, 4096, 14336, 32, 32, 8, 32768, m{"num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": nil}))
	f("Gemma3ForConditionalGeneration", 3.880, 131072, m{"eos_token_id": []int{1, 106}, "vision_config": m{}, "text_config": m{"hidden_size": 2560, "intermediate_size": 10240,
		"num_hidden_layers": 34, "sliding_window": 1024, "rope_scaling": m{"factor": 8, "rope_type": "linear"}}})
	f("Glm4ForCausalLM", 9.400, 32768, decoder(151552, 4096, 13696, 40, 32, 2, 32768, m{"head_dim": 128, "attention_bias": true, "partial_rotary_factor": 0.5}))
	f("Glm4MoeForCausalLM", 106.85, 131072, decoder(151552, 4096, 10944, 46, 96, 8, 131072, m{"head_dim": 128, "attention_bias": true, "n_routed_experts": 128,
		"num_experts_per_tok": 8, "moe_intermediate_size": 1408, "num_nextn_predict_layers": 1, "use_qk_norm": false}))
	f("SeedOssForCausalLM", 36.15, 524288, decoder(155136, 5120, 27648, 64, 80, 8, 524288, m{"head_dim": 128, "attention_bias": true}))
	f("HunYuanDenseV1ForCausalLM", 7.505, 32768, decoder(128167, 4096, 14336, 32, 32, 8, 32768, m{"head_dim": 128, "tie_word_embeddings": true,
		"rope_scaling": m{"type": "dynamic", "alpha": 1000, "factor": 1}}))
	f("DeepseekV2ForCausalLM", 15.71, 163840, decoder(102400, 2048, 10944, 27, 16, 16, 163840, m{"kv_lora_rank": 512, "q_lora_rank": nil, "n_routed_experts": 64,
		"n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1408, "first_k_dense_replace": 1, "topk_method": "greedy",
		"rope_scaling": m{"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "mscale": 0.707, "mscale_all_dim": 0.707}}))
	f("Qwen3NextForCausalLM", 79.67, 262144, decoder(151936, 2048, 5120, 48, 16, 2, 262144, m{"head_dim": 256, "full_attention_interval": 4}))
	f("BertModel", 0.334, 512, m{"vocab_size": 30522, "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16})
	f("XLMRobertaModel", 0.567, 8192, m{"vocab_size": 250002, "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
		"max_position_embeddings": 8194, "pad_token_id": 1, "type_vocab_size": 1, "layer_norm_eps": 1e-5})
}

// TestPublishedSeers: the same of models that see.
func TestPublishedSeers(t *testing.T) {
	type m = map[string]any
	text := func(hidden, inner, layers, heads, kv int, theta float64, section []int, more m) m {
		c := m{"vocab_size": 151936, "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv,
			"hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": theta, "rope_scaling": m{"rope_type": "default", "mrope_interleaved": true, "mrope_section": section}}
		maps.Copy(c, more)
		return c
	}
	published(t, "Qwen2_5_VLForConditionalGeneration", 8.292, 128000, text(3584, 18944, 28, 28, 4, 1e6, []int{16, 24, 24}, m{"vocab_size": 152064, "max_position_embeddings": 128000,
		"rope_scaling": m{"type": "mrope", "mrope_section": []int{16, 24, 24}}, "vision_config": m{"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "out_hidden_size": 3584}}))
	published(t, "Qwen3VLForConditionalGeneration", 8.767, 262144, m{"vision_config": m{"out_hidden_size": 4096},
		"text_config": text(4096, 12288, 36, 32, 8, 5e6, []int{24, 20, 20}, m{"head_dim": 128, "max_position_embeddings": 262144})})
	published(t, "Qwen3VLMoeForConditionalGeneration", 31.07, 262144, m{"vision_config": m{"out_hidden_size": 2048}, "tie_word_embeddings": false,
		"text_config": text(2048, 6144, 48, 32, 4, 5e6, []int{24, 20, 20}, m{"head_dim": 128, "max_position_embeddings": 262144, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "tie_word_embeddings": false})})
}

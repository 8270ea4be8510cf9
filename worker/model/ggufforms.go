package model

import "strings"

// ggufForm is how GGUF files of an architecture differ from a folder of Hugging
// Face: a row of the table of what is read.
type ggufForm struct {
	arch    string // general.architecture
	experts bool   // the form of files with expert_count, where others share the name

	fields []ggufField       // keys besides ggufFields
	config map[string]any    // fields of config.json that no key says
	same   map[string]any    // keys that may stand if they have this value
	parts  map[string]string // a layer's parts besides ggufParts
	paired bool              // the rows of a head of queries and keys are stored in pairs
	ends   []string          // tokens that end an answer, besides ggufEnds
}

// ggufField is a key of a GGUF file, behind the architecture's name, that is a
// field of config.json.
type ggufField struct {
	key, field string
	real       bool // a float
	must       bool
}

// ggufFields are those of all architectures.
var ggufFields = []ggufField{
	{key: "block_count", field: "num_hidden_layers", must: true},
	{key: "context_length", field: "max_position_embeddings", must: true},
	{key: "embedding_length", field: "hidden_size", must: true},
	{key: "feed_forward_length", field: "intermediate_size", must: true},
	{key: "attention.head_count", field: "num_attention_heads", must: true},
	{key: "attention.head_count_kv", field: "num_key_value_heads"},
	{key: "attention.key_length", field: "head_dim"},
	{key: "attention.layer_norm_rms_epsilon", field: "rms_norm_eps", real: true, must: true},
	{key: "rope.freq_base", field: "rope_theta", real: true},
}

// ggufParts are the names of a layer's parts. A part of Hugging Face that has no
// suffix is a weight in GGUF.
var ggufParts = map[string]string{
	"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
	"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
	"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
	"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
	"mlp.gate": "ffn_gate_inp", "mlp.experts.gate_up_proj": "ffn_gate_up_exps",
	"mlp.experts.gate_proj": "ffn_gate_exps", "mlp.experts.up_proj": "ffn_up_exps", "mlp.experts.down_proj": "ffn_down_exps",
}

// ggufEnds are the tokens that end a turn in these families' templates.
var ggufEnds = []string{"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"}

var (
	ggufLlama    = &ggufForm{arch: "llama", paired: true}
	ggufQwen2    = &ggufForm{arch: "qwen2"}
	ggufQwen3    = &ggufForm{arch: "qwen3"}
	ggufQwen3MoE = &ggufForm{arch: "qwen3moe",
		fields: []ggufField{
			{key: "expert_count", field: "num_experts", must: true},
			{key: "expert_used_count", field: "num_experts_per_tok", must: true},
			{key: "expert_feed_forward_length", field: "moe_intermediate_size", must: true},
		},
		config: map[string]any{"norm_topk_prob": true}}
	// Those who define the format have no windows under this name.
	ggufMixtral = &ggufForm{arch: "llama", experts: true, paired: true,
		fields: []ggufField{
			{key: "expert_count", field: "num_local_experts", must: true},
			{key: "expert_used_count", field: "num_experts_per_tok", must: true},
		},
		config: map[string]any{"sliding_window": nil},
		parts: map[string]string{"block_sparse_moe.gate": "ffn_gate_inp",
			"block_sparse_moe.experts.w1": "ffn_gate_exps", "block_sparse_moe.experts.w3": "ffn_up_exps", "block_sparse_moe.experts.w2": "ffn_down_exps",
			"block_sparse_moe.experts.gate_up_proj": "ffn_gate_up_exps"}}
)

// ggufGemma3 has the norms' weights with 1 added, as they multiply; of the windows,
// those who define the format write the length alone.
var ggufGemma3 = &ggufForm{arch: "gemma3", ends: []string{"<end_of_turn>"},
	fields: []ggufField{
		{key: "attention.sliding_window", field: "sliding_window", must: true},
		{key: "attention.sliding_window_pattern", field: "sliding_window_pattern"},
		{key: "rope.freq_base_swa", field: "rope_local_base_freq", real: true},
		{key: "final_logit_softcapping", field: "final_logit_softcapping", real: true},
	},
	config: map[string]any{"query_pre_attn_scalar": 0},
	same:   map[string]any{"mm.tokens_per_image": nil},
	parts: map[string]string{"post_attention_layernorm": "post_attention_norm",
		"pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm"}}

// name is what the file calls a tensor of Hugging Face.
func (f *ggufForm) name(name string) string {
	switch name {
	case "model.embed_tokens.weight":
		return "token_embd.weight"
	case "model.norm.weight":
		return "output_norm.weight"
	case "lm_head.weight":
		return "output.weight"
	}
	rest, layer := strings.CutPrefix(name, "model.layers.")
	number, rest, found := strings.Cut(rest, ".")
	if !layer || !found {
		return name
	}
	if part := f.part(rest); part != "" {
		return "blk." + number + "." + part + ".weight"
	}
	if dot := strings.LastIndexByte(rest, '.'); dot > 0 && f.part(rest[:dot]) != "" {
		return "blk." + number + "." + f.part(rest[:dot]) + rest[dot:]
	}
	return name
}

// part is what the file calls a layer's part; "" if there is no such part.
func (f *ggufForm) part(name string) string {
	if part := f.parts[name]; part != "" {
		return part
	}
	return ggufParts[name]
}

package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"roundhouse/worker/weights"
)

// ggufFields are keys of a GGUF file, behind the architecture's name, that are
// fields of config.json.
var ggufFields = []struct {
	key, field string
	real       bool // a float
	must       bool
}{
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

// ggufArchitectures are those that are read, and what they are elsewhere.
func ggufArchitectures() map[string]string {
	m := map[string]string{}
	for _, a := range architectures() {
		if a.gguf != "" {
			m[a.gguf] = a.name
		}
	}
	return m
}

// config is the header as config.json would say it, so that it passes the same
// checks. Keys that would change the result and are not known are errors.
func (g *ggufFile) config(set *weights.Set) (map[string]any, error) {
	arch, err := g.head.String("general.architecture")
	if err != nil {
		return nil, err
	}
	known := ggufArchitectures()
	if known[arch] == "" {
		return nil, fmt.Errorf("general.architecture %.100q is not supported; supported in GGUF are: %s", arch, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	g.arch = arch
	config := map[string]any{"architectures": []string{known[arch]}, "model_type": arch, "rope_theta": 10_000.0, "torch_dtype": g.mostType()}
	read := map[string]bool{}
	for _, f := range ggufFields {
		key := arch + "." + f.key
		read[key] = true
		if !g.head.Has(key) {
			if f.must {
				return nil, fmt.Errorf("%s is missing", key)
			}
			continue
		}
		if f.real {
			config[f.field], err = g.head.Float(key, 0)
		} else {
			config[f.field], err = g.head.Int(key, 0)
		}
		if err != nil {
			return nil, err
		}
	}
	table := set.Lookup("token_embd.weight")
	if table == nil || len(table.Shape) != 2 {
		return nil, fmt.Errorf("token_embd.weight is missing or no matrix")
	}
	config["vocab_size"] = table.Shape[0]
	config["tie_word_embeddings"] = set.Lookup("output.weight") == nil
	if config["rope_scaling"], err = g.scaling(read); err != nil {
		return nil, err
	}
	return config, g.checkKeys(config, read)
}

// scaling is rope_scaling.
func (g *ggufFile) scaling(read map[string]bool) (map[string]any, error) {
	value := func(key string, absent float64) (float64, error) {
		key = g.arch + "." + key
		read[key] = true
		return g.head.Float(key, absent)
	}
	key := g.arch + ".rope.scaling.type"
	read[key] = true
	kind, err := g.head.String(key)
	if err != nil {
		return nil, err
	}
	old, err := value("rope.scale_linear", 0)
	if err != nil {
		return nil, err
	}
	factor, err := value("rope.scaling.factor", old)
	if err != nil {
		return nil, err
	}
	original, err := value("rope.scaling.original_context_length", 0)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "none", "":
		// As those who define the format have it, a factor alone is linear.
		if factor == 0 || factor == 1 || kind == "none" {
			return nil, nil
		}
		return map[string]any{"rope_type": "linear", "factor": factor}, nil
	case "linear":
		return map[string]any{"rope_type": "linear", "factor": factor}, nil
	case "yarn":
		p := map[string]any{"rope_type": "yarn", "factor": factor}
		if original > 0 {
			p["original_max_position_embeddings"] = original
		}
		for key, field := range map[string]string{"yarn_beta_fast": "beta_fast", "yarn_beta_slow": "beta_slow"} {
			v, err := value("rope.scaling."+key, 0)
			if err != nil {
				return nil, err
			}
			if v != 0 {
				p[field] = v
			}
		}
		times, err := value("rope.scaling.attn_factor", 1)
		if err != nil {
			return nil, err
		}
		if times != 1 && factor > 1 {
			p["attention_factor"] = times * (0.1*math.Log(factor) + 1)
		}
		return p, nil
	}
	return nil, fmt.Errorf("%s %.40q is not supported; supported are none, linear, yarn", key, kind)
}

// checkKeys refuses keys of the architecture that are not read, but for those
// that change nothing or say what is so anyway.
func (g *ggufFile) checkKeys(config map[string]any, read map[string]bool) error {
	headDim := config["head_dim"]
	if headDim == nil && config["num_attention_heads"].(int) > 0 {
		headDim = config["hidden_size"].(int) / config["num_attention_heads"].(int)
	}
	harmless := map[string]any{
		"vocab_size": nil, "tensor_data_layout": nil, "rope.scaling.finetuned": nil,
		"attention.value_length": headDim, "rope.dimension_count": headDim,
		"attention.causal": true, "expert_count": 0, "expert_used_count": 0,
	}
	for _, key := range slices.Sorted(maps.Keys(g.head.Values)) {
		rest, ours := strings.CutPrefix(key, g.arch+".")
		if !ours || read[key] {
			continue
		}
		want, ok := harmless[rest]
		found := fmt.Sprint(g.head.Values[key])
		switch {
		case !ok:
			return fmt.Errorf("%s is not known, and may change what the model computes", key)
		case want != nil && found != fmt.Sprint(want):
			return fmt.Errorf("%s is %.40s; this architecture is known with %v", key, found, want)
		}
	}
	return nil
}

// mostType is the type of most of the file's bytes.
func (g *ggufFile) mostType() string {
	bytes := map[string]int64{}
	most := ""
	for _, t := range g.head.Tensors {
		name := strings.ToLower(t.Type.String())
		bytes[name] += t.End - t.Begin
		if bytes[name] > bytes[most] {
			most = name
		}
	}
	names := map[string]string{"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
	if n, ok := names[most]; ok {
		return n
	}
	return most
}

// ggufParts are the names of a layer's parts.
var ggufParts = map[string]string{
	"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
	"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
	"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
	"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}

// ggufName is what a GGUF file calls a tensor of Hugging Face.
func ggufName(name string) string {
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
	dot := strings.LastIndexByte(rest, '.')
	if !layer || !found || dot < 0 || ggufParts[rest[:dot]] == "" {
		return name
	}
	return "blk." + number + "." + ggufParts[rest[:dot]] + rest[dot:]
}

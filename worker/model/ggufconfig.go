package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"roundhouse/worker/weights"
)

// config is the header as config.json would say it, so that it passes the same
// checks. Keys that would change the result and are not known are errors.
func (g *ggufFile) config(set *weights.Set) (map[string]any, error) {
	name, err := g.findForm()
	if err != nil {
		return nil, err
	}
	// Heads of no length are as wide as those who define the format have them.
	config := map[string]any{"architectures": []string{name}, "model_type": g.arch, "rope_theta": 10_000.0, "torch_dtype": g.mostType(),
		"num_key_value_heads": 0, "head_dim": 0}
	maps.Copy(config, g.form.config)
	read := map[string]bool{}
	for _, f := range slices.Concat(ggufFields, g.form.fields) {
		read[g.arch+"."+f.key] = true
		if err := g.field(config, f); err != nil {
			return nil, err
		}
	}
	for _, f := range g.form.fields { // the others have bounds of their own
		if n, ok := config[f.field].(int); ok && n < 1 {
			return nil, fmt.Errorf("%s.%s is %d; want 1 or more", g.arch, f.key, n)
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

// field takes one key, if the file has it.
func (g *ggufFile) field(config map[string]any, f ggufField) (err error) {
	key := g.arch + "." + f.key
	switch {
	case !g.head.Has(key) && f.must:
		return fmt.Errorf("%s is missing", key)
	case !g.head.Has(key):
	case f.real:
		config[f.field], err = g.head.Float(key, 0)
	default:
		config[f.field], err = g.head.Int(key, 0)
	}
	return err
}

// findForm picks the form of the file's architecture, and returns the name that
// config.json has for it. Where two share a name, that
// with experts stands later.
func (g *ggufFile) findForm() (name string, err error) {
	arch, err := g.head.String("general.architecture")
	if err != nil {
		return "", err
	}
	experts, err := g.head.Int(arch+".expert_count", 0)
	if err != nil {
		return "", err
	}
	var known []string
	for _, a := range architectures() {
		if a.gguf == nil {
			continue
		}
		known = append(known, a.gguf.arch)
		if a.gguf.arch == arch && (!a.gguf.experts || experts > 0) {
			name, g.arch, g.form = a.name, arch, a.gguf
		}
	}
	if name == "" {
		slices.Sort(known)
		return "", fmt.Errorf("general.architecture %.100q is not supported; supported in GGUF are: %s", arch, strings.Join(slices.Compact(known), ", "))
	}
	return name, nil
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
	if headDim == 0 && config["num_attention_heads"].(int) > 0 {
		headDim = config["hidden_size"].(int) / config["num_attention_heads"].(int)
	}
	harmless := map[string]any{
		"vocab_size": nil, "tensor_data_layout": nil, "rope.scaling.finetuned": nil,
		"attention.value_length": headDim, "rope.dimension_count": headDim,
		"attention.causal": true, "expert_count": 0, "expert_used_count": 0,
	}
	maps.Copy(harmless, g.form.same)
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

package model

import (
	"maps"
	"math"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
)

// plannedShape is small, and all its widths are whole blocks of every format.
func plannedShape() map[string]any {
	shape := maps.Clone(benchShape)
	maps.Copy(shape, map[string]any{"vocab_size": 1024, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 4,
		"moe_intermediate_size": 256, "shared_expert_intermediate_size": 256,
		"d_model": 256, "decoder_layers": 4, "decoder_attention_heads": 4, "decoder_ffn_dim": 512, "encoder_layers": 1, "encoder_attention_heads": 4, "encoder_ffn_dim": 512,
		"max_source_positions": 100})
	return shape
}

// TestPlanIsTaken: what the CPU backend takes for weights, pages and a step's
// buffers is what the plan said. The plan does not know in which order a
// backend finds room for buffers, which costs encoders most.
func TestPlanIsTaken(t *testing.T) {
	for i, arch := range architectures() {
		if arch.seeing || raceDetector && i > 0 {
			continue // as their text models
		}
		m := shapedModel(t, arch, plannedShape())
		for _, format := range []kernels.Format{kernels.FormatF32, kernels.FormatBF16, kernels.FormatInt8, kernels.FormatInt4} {
			o := PlanOptions{Memory: 1 << 26, Utilisation: 1, Format: format, KVType: kernels.BF16, BlockTokens: 32, MaxModelLen: 64,
				Limits: kernels.Limits{Tokens: 128, Seqs: 8, Rows: 8, Frames: 100}}
			p, err := m.Plan(o)
			if err != nil {
				t.Errorf("%s as %v: %v", arch.name, format, err)
				continue
			}
			weights, pages, step := taken(t, m, format, p.KVSpecs, o.Limits)
			within := func(what string, took, planned int64, share float64) {
				t.Helper()
				if off := float64(took)/float64(planned) - 1; math.Abs(off) > share {
					t.Errorf("%s as %v: %s takes %d bytes; %d were planned, %+.1f %%", arch.name, format, what, took, planned, 100*off)
				}
			}
			within("the weights", weights, p.Weights, 0.04)
			var planned int64
			for _, s := range p.KVSpecs {
				planned += int64(s.Blocks) * s.PageBytes()
			}
			if pages != planned || planned > p.KV {
				t.Errorf("%s as %v: the cache takes %d bytes; %d were planned of %d", arch.name, format, pages, planned, p.KV)
			}
			within("a step", step, p.Activations, map[bool]float64{false: 0.06, true: 0.12}[arch.encoder])
		}
	}
}

// taken is what a backend takes of what is planned.
func taken(t *testing.T, m *Model, format kernels.Format, kv []kernels.KVSpec, l kernels.Limits) (weights, pages, step int64) {
	t.Helper()
	be, err := cpu.New(cpu.Options{Threads: 1, ISA: "go"})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	built, err := m.Build(be, BuildOptions{Format: format, KV: kv})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range built.KV {
		pages += k.Bytes()
	}
	weights = be.Bytes() - pages
	if _, err := be.Compile(built.Program, l); err != nil {
		t.Fatal(err)
	}
	return weights, pages, be.Bytes() - weights - pages
}

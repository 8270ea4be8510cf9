package model

import (
	"errors"
	"strings"
	"testing"

	"roundhouse/kernels"
	"roundhouse/worker/gguf"
)

func planOptions(memory int64) PlanOptions {
	return PlanOptions{Memory: memory, Utilisation: 1, Format: kernels.FormatBF16, KVType: kernels.BF16, BlockTokens: 16,
		Limits: kernels.Limits{Tokens: 32, Seqs: 4, Rows: 4}}
}

func TestPlan(t *testing.T) {
	base := readFixture(t, "llama")
	m := openFixture(t, base.Config, base.Tensors)
	// 4 layers, 2 heads, keys and values of 16 columns in 2 bytes.
	const page = 4 * 16 * 2 * (16 + 16) * 2
	o := planOptions(0)
	empty, err := m.Plan(o)
	if err == nil || !strings.Contains(err.Error(), "No available memory for the cache blocks") {
		t.Fatalf("got %v; want: no available memory", err)
	}
	fixed := empty.Weights + empty.Activations

	o.Memory = fixed + 40*page + page/2
	p, err := m.Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	if p.KVTokens != 640 || p.KVSpecs[0].Blocks != 40 || p.Concurrency != 2.5 || p.Longest != 256 || p.MaxModelLen != 256 {
		t.Errorf("plan %+v; want 40 blocks, 640 tokens, 2.5 sequences of 256", p)
	}

	o.Memory = fixed + 10*page
	p, err = m.Plan(o)
	if err == nil || !strings.Contains(err.Error(), "max seq len (256)") || !strings.Contains(err.Error(), "the estimated maximum model length is 160") {
		t.Fatalf("got %v; want vLLM's words and 160", err)
	}
	o.MaxModelLen = p.Longest
	if p, err = m.Plan(o); err != nil || p.Concurrency != 1 {
		t.Fatalf("the length that the error names does not fit: %v, %+v", err, p)
	}
	o.MaxModelLen = 257
	if _, err = m.Plan(o); err == nil || !strings.Contains(err.Error(), "max_model_len is 257; want 1 to 256") {
		t.Fatalf("got %v; want: max_model_len", err)
	}
	o.Beyond, o.Memory, o.MaxModelLen = true, fixed+40*page, 400
	if p, err = m.Plan(o); err != nil || p.MaxModelLen != 400 || p.Longest != 400 {
		t.Fatalf("beyond the model's positions: %v, %+v; want contexts of 400", err, p)
	}
	o.MaxModelLen = 0
	if p, err = m.Plan(o); err != nil || p.MaxModelLen != 256 {
		t.Fatalf("no length is asked for: %v, %+v; want the model's 256", err, p)
	}
}

// TestPlanBuilds: what is planned is what a backend then takes.
func TestPlanBuilds(t *testing.T) {
	for _, name := range []string{"llama", "gemma3", "glm4_moe"} {
		base := readFixture(t, name)
		m := openFixture(t, base.Config, base.Tensors)
		for _, format := range []kernels.Format{kernels.FormatF32, kernels.FormatBF16, kernels.FormatInt8, kernels.FormatInt4} {
			o := planOptions(1 << 22)
			o.Format = format
			p, err := m.Plan(o)
			if err != nil {
				t.Fatal(err)
			}
			var kv int64
			for _, s := range p.KVSpecs {
				kv += s.PageBytes() * int64(s.Blocks)
			}
			if sum := p.Weights + p.Activations + kv; sum > o.Memory || sum < o.Memory*9/10 {
				t.Errorf("%s as %v: %d of %d bytes are used", name, format, sum, o.Memory)
			}
		}
	}
}

// TestPlanWindows: a group with a window gets what its window needs for each
// sequence, and the rest goes to those that see all.
func TestPlanWindows(t *testing.T) {
	base := readFixture(t, "gemma3")
	m := openFixture(t, base.Config, base.Tensors)
	p, err := m.Plan(planOptions(1 << 23))
	if err != nil {
		t.Fatal(err)
	}
	// 2 + 2 blocks for the windows of each of 4 sequences, and 2 for a step.
	if window := p.KVSpecs[0].Blocks; window != 18 {
		t.Errorf("%d blocks for windows; want 18", window)
	}
	if whole := p.KVSpecs[1].Blocks; whole*16 != p.KVTokens || whole < 100 {
		t.Errorf("%d blocks that see all for %d tokens", whole, p.KVTokens)
	}
	if p.Concurrency < 4 || p.Concurrency > 4.5 {
		t.Errorf("%g sequences at once; want the 4 that windows were planned for", p.Concurrency)
	}
}

// TestReport: a table a person can read, and why a format does not fit.
func TestReport(t *testing.T) {
	base := readFixture(t, quantisedFixture)
	m := openFixture(t, base.Config, base.Tensors)
	var out strings.Builder
	o := planOptions(5 << 19)
	if err := m.Report(&out, o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Qwen3ForCausalLM: 2 layers of 256, vocabulary 72, 256 positions",
		"float32     no    2.40 MiB",
		"sym_int4    yes   0.35 MiB",
		"float32: No available memory for the cache blocks",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := m.Report(&out, planOptions(1<<10)); !errors.Is(err, ErrFitsNowhere) || strings.Count(out.String(), "No available memory for the cache blocks") != 6 {
		t.Errorf("got %v; want ErrFitsNowhere with a reason for each format:\n%s", err, out.String())
	}
}

// TestReportQuantised: what is quantised already is named as it is, and formats
// that it cannot be kept in are left out.
func TestReportQuantised(t *testing.T) {
	f := readFixture(t, quantisedFixture)
	report := func(m *Model) string {
		var out strings.Builder
		if err := m.Report(&out, planOptions(1<<24)); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, v := range f.Variants {
		text := report(openFixture(t, v.config(f), v.changed(f)))
		if method := v.Patch["quantization_config"].(map[string]any)["quant_method"]; method == "gptq" && (!strings.Contains(text, "gptq, as it is  yes") || strings.Contains(text, "sym_int4")) {
			t.Errorf("%s:\n%s", v.Name, text)
		}
	}
	g := &ggufFixture{}
	readJSON(t, "gguf_llama", g)
	var contents []gguf.Content
	for _, x := range g.Tensors {
		contents = append(contents, x.content())
	}
	if text := report(ggufModel(t, g.Values, contents)); !strings.Contains(text, "bfloat16, blocks int8  yes") || !strings.Contains(text, "sym_int4") {
		t.Errorf("GGUF:\n%s", text)
	}
}

// TestPlanTexts: a model that embeds takes a text in one step, and an encoder
// keeps nothing.
func TestPlanTexts(t *testing.T) {
	f := &pooledFixture{}
	readJSON(t, "bert", f)
	m := openFixture(t, f.Config, f.Tensors)
	o := planOptions(1 << 24)
	p, err := m.Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	if p.Limits.Tokens != 80 || p.MaxModelLen != 80 || p.KV != 0 || len(p.KVSpecs) != 0 || p.KVTokens < 80 {
		t.Errorf("plan %+v; want steps of a whole text of 80 tokens and no cache", p)
	}
	o.Beyond, o.MaxModelLen = true, 2048
	if p, err := m.Plan(o); err != nil || p.MaxModelLen != 80 {
		t.Errorf("beyond the model's positions: %v, %+v; want texts of 80 tokens, which is all it has", err, p)
	}
	o.Beyond, o.MaxModelLen = false, 0
	o.Memory = p.Weights
	if _, err := m.Plan(o); err == nil || !strings.Contains(err.Error(), "No available memory") {
		t.Errorf("got %v; want: no available memory", err)
	}
}

package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
	"roundhouse/worker/speech"
)

// heard is a golden file of a model that hears; whisper_fixtures.py says what is in
// it.
type heard struct {
	fixture
	Generation map[string]any
	Rows       string
	Sounds     []struct {
		Language     int32
		Plain, Timed []int32
		Decided      int
	}
}

func readHeard(t *testing.T) *heard {
	t.Helper()
	f := &heard{}
	readJSON(t, "whisper", f)
	return f
}

// open is openFixture with generation_config.json.
func (f *heard) open(t *testing.T, config map[string]any, tensors []fixtureTensor) *Model {
	t.Helper()
	dir := folder(t, config, tensors)
	data, err := json.Marshal(f.Generation)
	if err != nil {
		t.Fatal(err)
	}
	file := *dir["config.json"]
	file.Data = data
	dir["generation_config.json"] = &file
	m, err := OpenFS(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// features are the formula's of a sound.
func features(h *Hearing, sound int) []float32 {
	f := fixtureTensor{name: fmt.Sprintf("features %d", sound), shape: []int{2 * h.Rows * h.Bins}, scale: 1, kind: "F32"}
	return decodeFloats(f.fill())
}

// hear runs a tower over features.
func hear(t *testing.T, be kernels.Backend, m *Model, built *Built, in []float32) []float32 {
	t.Helper()
	h := m.Config().Hearing
	for _, s := range built.Tower {
		e, err := be.Compile(s.Program, m.TowerLimits(0, s))
		if err != nil {
			t.Fatal(err)
		}
		n := int32(h.Rows)
		step := &kernels.Step{Tokens: make([]int32, n), Features: in, Seqs: []kernels.Seq{{Count: n, Context: n, Frames: 2 * n}}}
		for i := range n {
			step.Positions = append(step.Positions, i)
		}
		var out kernels.Result
		if err := e.Run(step, &out); err != nil {
			t.Fatal(err)
		}
		in = slices.Concat(out.Output...)
	}
	return in
}

// read runs one text from token first on, with the rows of its sound where it
// begins. It chooses a token where sampling is set.
func (r *runner) read(t *testing.T, ids []int32, first int, rows []float32, width int, sampling *kernels.Sampling) kernels.Result {
	t.Helper()
	part := ids[first:]
	table := make([]int32, (len(ids)+blockTokens-1)/blockTokens)
	for i := range table {
		table[i] = (int32(i)*2 + 1) % r.blocks
	}
	step := &kernels.Step{Tokens: part, WantLogits: true, Seqs: []kernels.Seq{{Count: int32(len(part)), Context: int32(len(ids)), Blocks: [][]int32{table, {3}}}}}
	if first == 0 {
		step.Seqs[0].Frames, step.Features = int32(len(rows)/width), rows
	}
	for i := range part {
		step.Positions = append(step.Positions, int32(first+i))
		if sampling == nil {
			step.Rows = append(step.Rows, int32(i))
		}
	}
	if sampling != nil {
		step.Rows, step.Sampling = []int32{int32(len(part) - 1)}, []kernels.Sampling{*sampling}
	}
	var out kernels.Result
	if err := r.exec.Run(step, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// logitsHeard are those of all positions, computed in chunks.
func (r *runner) logitsHeard(t *testing.T, ids []int32, chunk int, rows []float32, width int) [][]float32 {
	t.Helper()
	var all [][]float32
	for first := 0; first < len(ids); first += chunk {
		for _, row := range r.read(t, ids[:min(first+chunk, len(ids))], first, rows, width, nil).Logits {
			all = append(all, slices.Clone(row[:r.vocab]))
		}
	}
	return all
}

// TestGoldenHearing holds the rows of an encoder and the logits of a text to
// transformers, with the same bits in one piece, in chunks and token by token, on
// both backends; and each changed setting to what it changes.
func TestGoldenHearing(t *testing.T) {
	f := readHeard(t)
	for _, be := range []kernels.Backend{ref.New(), newCPU(t)} {
		m := f.open(t, f.Config, f.Tensors)
		if n := m.Unread(); len(n) > 0 {
			t.Errorf("unread: %v", n)
		}
		h := m.Config().Hearing
		r := newRunner(t, be, m, len(f.IDs))
		rows := hear(t, be, m, r.built, features(h, 0))
		wide := func(x []float32) [][]float32 { return slices.Collect(slices.Chunk(x, h.Width)) }
		if d := difference(wide(rows), decodeRows(t, f.Rows, h.Width)); !(d <= tolerance) {
			t.Errorf("%s: rows of the encoder differ by %.2g of the greatest; want at most %g", be.Name(), d, tolerance)
		}
		whole, want := r.logitsHeard(t, f.IDs, len(f.IDs), rows, h.Width), decodeRows(t, f.Logits, r.vocab)
		if d := difference(whole, want); !(d <= tolerance) {
			t.Errorf("%s: logits differ by %.2g of the greatest; want at most %g", be.Name(), d, tolerance)
		}
		sameTokens(t, whole, want)
		for _, chunk := range []int{7, 1} {
			if d := difference(r.logitsHeard(t, f.IDs, chunk, rows, h.Width), whole); d != 0 {
				t.Errorf("%s: logits in chunks of %d differ by %.2g from those in one piece", be.Name(), chunk, d)
			}
		}
		for name, spoil := range map[string]func([]float32){
			"a frame late": func(x []float32) { copy(x, x[h.Bins:]) },
			"bands turned round": func(x []float32) {
				for row := range slices.Chunk(x, h.Bins) {
					slices.Reverse(row)
				}
			},
			"a quarter louder": func(x []float32) {
				for i := range x {
					x[i] *= 1.25
				}
			},
		} {
			x := features(h, 0)
			spoil(x)
			if d := difference(r.logitsHeard(t, f.IDs, len(f.IDs), hear(t, be, m, r.built, x), h.Width), whole); d < 100*tolerance {
				t.Errorf("%s: features %s move the logits by %.2g; nobody would see it", be.Name(), name, d)
			}
		}
	}
	base := decodeRows(t, f.Logits, 123)
	for _, v := range f.Variants {
		t.Run(v.Name, func(t *testing.T) {
			m := f.open(t, v.config(&f.fixture), v.changed(&f.fixture))
			h, be := m.Config().Hearing, newCPU(t)
			r := newRunner(t, be, m, len(f.IDs))
			got := r.logitsHeard(t, f.IDs, len(f.IDs), hear(t, be, m, r.built, features(h, 0)), h.Width)
			last := decodeRows(t, v.Last, r.vocab)
			if d := difference(got[len(got)-len(last):], last); !(d <= tolerance) {
				t.Errorf("logits differ by %.2g of the greatest; want at most %g", d, tolerance)
			}
			if far := difference(got, base); far < 100*tolerance {
				t.Errorf("logits are %.2g from those without the change", far)
			}
		})
	}
}

// names are the spelled tokens of the golden file.
func (f *heard) names() map[string]int32 {
	names := map[string]int32{"<|endoftext|>": 60, "<|startoftranscript|>": 61, "<|transcribe|>": 66, "<|translate|>": 67, "<|startofprev|>": 69, "<|notimestamps|>": 71}
	for name, id := range f.Generation["lang_to_id"].(map[string]any) {
		names[name] = int32(id.(float64))
	}
	return names
}

// TestGoldenWords: greedy text, without times and with them, and the language, are
// transformers', by its rules of what is not written.
func TestGoldenWords(t *testing.T) {
	f := readHeard(t)
	be := newCPU(t)
	m := f.open(t, f.Config, f.Tensors)
	h := m.Config().Hearing
	names := f.names()
	w, err := speech.NewWords(speech.Settings{Vocab: m.Config().Vocab, Suppress: h.Suppress, First: h.First, Latest: h.Latest, Many: h.Many},
		func(name string) (int32, bool) { id, ok := names[name]; return id, ok },
		func(id int32) string {
			for name, at := range names {
				if at == id {
					return name
				}
			}
			return ""
		})
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, be, m, 64)
	decided := 0
	for i, s := range f.Sounds {
		rows := hear(t, be, m, r.built, features(h, i))
		spoken := &kernels.Sampling{TopP: 1, Allowed: make([]uint32, 4)}
		for _, id := range w.Languages {
			spoken.Allowed[id/32] |= 1 << (id % 32)
		}
		language := r.read(t, []int32{w.Start}, 0, rows, h.Width, spoken).Sampled[0].Token
		if language != s.Language {
			t.Errorf("sound %d: language %d; want %d", i, language, s.Language)
		}
		for _, times := range []bool{false, true} {
			want := s.Plain
			if times {
				want = s.Timed
			}
			g := w.Guide(times)
			ids := w.Prompt(nil, w.Spoken()[language], false, times, 64)
			behind := len(ids)
			for first := 0; len(ids) < behind+len(want); {
				chosen := r.read(t, ids, first, rows, h.Width, &kernels.Sampling{TopP: 1, Allowed: slices.Clone(g.Mask(0)), Times: g.Times()}).Sampled[0].Token
				if !g.Accept(chosen) {
					t.Fatalf("sound %d: token %d is against the rules", i, chosen)
				}
				first, ids = len(ids), append(ids, chosen)
			}
			if !slices.Equal(ids[behind:], want) {
				t.Errorf("sound %d, times %v: %v; want %v", i, times, ids[behind:], want)
			}
		}
		decided += s.Decided
	}
	if decided == 0 {
		t.Error("no golden text needs the chance of all times together")
	}
}

// TestHostileHearing: what config.json and generation_config.json can get wrong is
// named.
func TestHostileHearing(t *testing.T) {
	base := readHeard(t)
	f := func(want, field string, value any) {
		t.Helper()
		config := maps.Clone(base.Config)
		config[field] = value
		dir := folder(t, config, base.Tensors)
		if _, err := OpenFS(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s %v: got %v; want %q", field, value, err, want)
		}
	}
	f("num_mel_bins is 0", "num_mel_bins", 0)
	f("conv1.weight has shape [32 80 3]; want [32 81 3]", "num_mel_bins", 81)
	f("max_source_positions is -1", "max_source_positions", -1)
	f("encoder.embed_positions.weight has shape [50 32]; want [51 32]", "max_source_positions", 51)
	f("decoder.embed_positions.weight has shape [64 32]; want [65 32]", "max_target_positions", 65)
	f("encoder_attention_heads is 3", "encoder_attention_heads", 3)
	f("encoder_attention_heads is 0", "encoder_attention_heads", 0)
	f("decoder_attention_heads is 3", "decoder_attention_heads", 3)
	f("num_attention_heads is 0", "decoder_attention_heads", 0)
	f("encoder_layers is 0", "encoder_layers", 0)
	f("num_hidden_layers is 0", "decoder_layers", 0)
	f("encoder.layers.2.fc1.bias is missing", "encoder_layers", 3)
	f("decoder.layers.2.encoder_attn.k_proj.weight is missing", "decoder_layers", 3)
	f("encoder_ffn_dim is 0", "encoder_ffn_dim", 0)
	f("hidden_act is \"relu\"", "activation_function", "relu")
	f("hidden_size is 0", "d_model", 0)
	f("d_model is string", "d_model", "x")
	f("token id 123 of suppress_tokens", "suppress_tokens", []int{123})
	dir := folder(t, base.Config, base.Tensors)
	file := *dir["config.json"]
	file.Data = []byte(`{"begin_suppress_tokens":[-1]}`)
	dir["generation_config.json"] = &file
	if _, err := OpenFS(dir); err == nil || !strings.Contains(err.Error(), "token id -1 of suppress_tokens or begin_suppress_tokens") {
		t.Errorf("got %v", err)
	}
}

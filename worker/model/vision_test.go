package model

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// seen is a golden file of a model that sees; vision_fixtures.py says what is in
// it.
type seen struct {
	fixture
	Grids     [][3]int
	Positions [3][]int32
	Delta     int
	Rows      string
}

func readSeen(t *testing.T, name string) *seen {
	t.Helper()
	f := &seen{}
	readJSON(t, name, f)
	return f
}

// changedVision is variant.config for patches of vision_config and text_config.
func changedVision(v *variant, config map[string]any) map[string]any {
	config = maps.Clone(config)
	for key, value := range v.Patch {
		if fields, ok := value.(map[string]any); ok && (key == "vision_config" || key == "text_config") {
			eyes := maps.Clone(config[key].(map[string]any))
			maps.Copy(eyes, fields)
			value = eyes
		}
		config[key] = value
	}
	return config
}

// pictures are the rows that a model's tower gives for a golden file's pictures.
func (f *seen) pictures(t *testing.T, be kernels.Backend, m *Model, built *Built) [][]float32 {
	t.Helper()
	v := m.Config().Vision
	var rows [][]float32
	for i, grid := range f.Grids {
		patches := grid[1] * grid[2]
		features := fixtureTensor{name: "features " + string(rune('0'+i)), shape: []int{patches * v.Pixels}, scale: 2, kind: "F32"}
		in := decodeFloats(features.fill())
		rows = append(rows, look(t, be, built, v, grid[1], grid[2], in)...)
	}
	return rows
}

// look runs a tower over one picture.
func look(t *testing.T, be kernels.Backend, built *Built, v *Vision, lines, line int, in []float32) [][]float32 {
	t.Helper()
	l, n := v.Layout(lines, line), lines*line
	fold := v.Merge * v.Merge
	in = built.Places.Beside(l.Arrange(in), &l, lines, line)
	var out kernels.Result
	var aside [][][]float32
	for _, s := range built.Tower {
		e, err := be.Compile(s.Program, v.Limits(n, s))
		if err != nil {
			t.Fatal(err)
		}
		tokens := n
		if s.Fold > 1 {
			tokens = n / s.Fold
		}
		step := &kernels.Step{Tokens: make([]int32, tokens), Positions: make([]int32, tokens), Axes: l.Axes[:3*tokens], Features: in}
		ends := []int32{int32(tokens)}
		if s.Windows {
			ends = l.Cuts
		}
		for i, first := 0, int32(0); i < len(ends); i, first = i+1, ends[i] {
			step.Seqs = append(step.Seqs, kernels.Seq{First: first, Count: ends[i] - first, Context: ends[i] - first})
		}
		if err := e.Run(step, &out); err != nil {
			t.Fatal(err)
		}
		made := make([][]float32, len(out.Output))
		for i, row := range out.Output {
			made[i] = slices.Clone(row)
		}
		if s.Aside {
			aside = append(aside, made)
			continue
		}
		in = slices.Concat(made...)
	}
	rows := make([][]float32, n/fold)
	for i := range rows {
		at := i
		if l.Order != nil {
			at = int(l.Order[i])
		}
		rows[at] = in[i*len(in)/len(rows):][:len(in)/len(rows)]
		for _, more := range aside {
			rows[at] = append(slices.Clip(rows[at]), more[i]...)
		}
	}
	return rows
}

// logitsSeen runs the prompt with rows in place of its pictures, in chunks.
func (f *seen) logitsSeen(t *testing.T, r *runner, rows [][]float32, image int32, chunk int) [][]float32 {
	t.Helper()
	table := make([]int32, (len(f.IDs)+blockTokens-1)/blockTokens)
	for i := range table {
		table[i] = (int32(i)*2 + 1) % r.blocks
	}
	var all [][]float32
	next := 0 // row
	for first := 0; first < len(f.IDs); first += chunk {
		part := f.IDs[first:min(first+chunk, len(f.IDs))]
		step := &kernels.Step{Tokens: part, WantLogits: true, Seqs: []kernels.Seq{{Count: int32(len(part)), Context: int32(first + len(part)), Blocks: slices.Repeat([][]int32{table}, r.groups)}}}
		for i, id := range part {
			for axis := range 3 {
				step.Axes = append(step.Axes, f.Positions[axis][first+i])
			}
			step.Positions = append(step.Positions, f.Positions[0][first+i])
			step.Rows = append(step.Rows, int32(i))
			at := int32(-1)
			if id == image {
				at = int32(len(step.Media) / len(rows[next]))
				step.Media = append(step.Media, rows[next]...)
				next++
			}
			step.MediaRow = append(step.MediaRow, at)
		}
		var out kernels.Result
		if err := r.exec.Run(step, &out); err != nil {
			t.Fatal(err)
		}
		for _, row := range out.Logits {
			all = append(all, append([]float32(nil), row[:r.vocab]...))
		}
	}
	return all
}

// TestGoldenVision holds every tower's rows, and the logits behind two pictures,
// to transformers; in one piece and in chunks that cut a picture they have the
// same bits, on both backends.
func TestGoldenVision(t *testing.T) {
	for _, arch := range seers() {
		t.Run(arch.name, func(t *testing.T) {
			f := readSeen(t, arch.fixture)
			f.golden(t, ref.New())
			f.golden(t, newCPU(t))
			f.variants(t)
		})
	}
}

// golden holds the rows and logits that a backend computes to the golden file.
func (f *seen) golden(t *testing.T, be kernels.Backend) {
	t.Helper()
	m := openFixture(t, f.Config, f.Tensors)
	r := newRunner(t, be, m, len(f.IDs))
	rows := f.pictures(t, be, m, r.built)
	if d := difference(rows, decodeRows(t, f.Rows, m.Config().Vision.Rows)); !(d <= tolerance) {
		t.Errorf("%s: rows of the tower differ by %.2g of the greatest; want at most %g", be.Name(), d, tolerance)
	}
	whole := f.logitsSeen(t, r, rows, m.Config().Vision.Image, len(f.IDs))
	want := decodeRows(t, f.Logits, r.vocab)
	if d := difference(whole, want); !(d <= tolerance) {
		t.Errorf("%s: logits differ by %.2g of the greatest; want at most %g", be.Name(), d, tolerance)
	}
	sameTokens(t, whole, want)
	if d := difference(f.logitsSeen(t, r, rows, m.Config().Vision.Image, 7), whole); d != 0 {
		t.Errorf("%s: logits in chunks of 7 differ by %.2g from those in one piece", be.Name(), d)
	}
}

// variants holds each changed setting to what it makes of the logits.
func (f *seen) variants(t *testing.T) {
	base := decodeRows(t, f.Logits, 72)
	for _, v := range f.Variants {
		t.Run(v.Name, func(t *testing.T) {
			m := openFixture(t, changedVision(&v, f.Config), v.changed(&f.fixture))
			be := newCPU(t)
			r := newRunner(t, be, m, len(f.IDs))
			got := f.logitsSeen(t, r, f.pictures(t, be, m, r.built), m.Config().Vision.Image, len(f.IDs))
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

// TestNewNames: the same tower and text under the names that transformers gives
// them since it has classes for all.
func TestNewNames(t *testing.T) {
	f := readSeen(t, "qwen2_vl")
	config := maps.Clone(f.Config)
	text := map[string]any{}
	for _, name := range []string{"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size", "rms_norm_eps", "rope_theta", "rope_scaling", "max_position_embeddings"} {
		text[name] = config[name]
		delete(config, name)
	}
	config["text_config"] = text
	tensors := slices.Clone(f.Tensors)
	for i, x := range tensors {
		if strings.HasPrefix(x.name, "visual.") {
			tensors[i].name = "model." + x.name
		} else if strings.HasPrefix(x.name, "model.") {
			tensors[i].name = "model.language_model." + strings.TrimPrefix(x.name, "model.")
		}
	}
	m := openFixture(t, config, tensors)
	if n := m.Unread(); len(n) > 0 {
		t.Errorf("unread: %v", n)
	}
}

// TestHostileVision: what vision_config can get wrong is named.
func TestHostileVision(t *testing.T) {
	base := readSeen(t, "qwen2_5_vl")
	f := func(want string, patch map[string]any) {
		t.Helper()
		config := changedVision(&variant{Patch: patch}, base.Config)
		_, err := OpenFS(folder(t, config, base.Tensors))
		if err == nil || !strings.Contains(err.Error(), want) {
			data, _ := json.Marshal(patch)
			t.Errorf("%s: got %v; want %q", data, err, want)
		}
	}
	eyes := func(field string, value any) map[string]any {
		return map[string]any{"vision_config": map[string]any{field: value}}
	}
	f("vision_config is missing", map[string]any{"vision_config": nil})
	f("depth is 0", eyes("depth", 0))
	f("num_heads is 0", eyes("num_heads", 0))
	f("rows of 32 columns for 3 heads", eyes("num_heads", 3))
	f("patch_size is -1", eyes("patch_size", -1))
	f("patch_size is", eyes("patch_size", "large"))
	f("spatial_merge_size is 0", eyes("spatial_merge_size", 0))
	f("temporal_patch_size is 17", eyes("temporal_patch_size", 17))
	f("in_channels is 4", eyes("in_channels", 4))
	f("out_hidden_size is 65", eyes("out_hidden_size", 65))
	f("window_size is 7", eyes("window_size", 7))
	f("hidden_act", eyes("hidden_act", "relu"))
	f("image_token_id", map[string]any{"image_token_id": 72})
	f("image_token_id", map[string]any{"image_token_id": nil})
	f("mrope_section is [1 2 3]", map[string]any{"rope_scaling": map[string]any{"type": "mrope", "mrope_section": []int{1, 2, 3}}})
	f("mrope_section is [-1 5 4]", map[string]any{"rope_scaling": map[string]any{"type": "mrope", "mrope_section": []int{-1, 5, 4}}})
	f("blocks.3.norm1.weight is missing", eyes("depth", 4))

	base = readSeen(t, "qwen3_vl")
	f("num_position_embeddings is 0", eyes("num_position_embeddings", 0))
	f("24 positions; want a square", eyes("num_position_embeddings", 24))
	f("pos_embed.weight has shape [25 32]; want [16 32]", eyes("num_position_embeddings", 16))
	f("deepstack_visual_indexes are [0 3]", eyes("deepstack_visual_indexes", []int{0, 3}))
	f("deepstack_visual_indexes are [1 1]", eyes("deepstack_visual_indexes", []int{1, 1}))
	f("deepstack_merger_list.2.norm.weight is missing", eyes("deepstack_visual_indexes", []int{0, 1, 2}))
	f("intermediate_size is 0", eyes("intermediate_size", 0))
	f("mrope_section is [4 2]", map[string]any{"text_config": map[string]any{"rope_parameters": map[string]any{"rope_theta": 1e4, "mrope_section": []int{4, 2}}}})
	base = readSeen(t, "qwen3_vl_moe")
	f("5 of 4 experts", map[string]any{"text_config": map[string]any{"num_experts_per_tok": 5}})
	f("mlp.experts.gate_up_proj has shape", map[string]any{"text_config": map[string]any{"moe_intermediate_size": 20}})
}

// TestLayout: windows are side by side, those at the edges smaller.
func TestLayout(t *testing.T) {
	v := &Vision{Merge: 2, window: 2}
	l := v.Layout(6, 4) // three lines of two rows
	if !slices.Equal(l.Order, []int32{0, 1, 2, 3, 4, 5}) || !slices.Equal(l.Cuts, []int32{16, 24}) {
		t.Errorf("order %v with cuts %v", l.Order, l.Cuts)
	}
	l = v.Layout(4, 6)
	if !slices.Equal(l.Order, []int32{0, 1, 3, 4, 2, 5}) || !slices.Equal(l.Cuts, []int32{16, 24}) {
		t.Errorf("order %v with cuts %v", l.Order, l.Cuts)
	}
	if at := 3 * 4 * 4; !slices.Equal(l.Axes[at:at+12], []int32{0, 4, 0, 0, 5, 0, 1, 4, 0, 1, 5, 0}) {
		t.Errorf("axes %v", l.Axes)
	}
}

package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

// written is a fixture's folder on disk.
func written(t *testing.T, name string) string {
	t.Helper()
	f := readFixture(t, name)
	dir := t.TempDir()
	for file, data := range folder(t, f.Config, f.Tensors) {
		if err := os.WriteFile(filepath.Join(dir, file), data.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestAnswerTokens: a decoder that scores by two tokens gives the difference
// of their logits, tied to the embedding or not.
func TestAnswerTokens(t *testing.T) {
	f := readFixture(t, "qwen3")
	const no, yes = 7, 40
	for _, tied := range []string{"false", "true"} {
		over := Overrides{"tie_word_embeddings": json.RawMessage(tied)}
		m, err := OpenWith(written(t, "qwen3"), over)
		if err != nil {
			t.Fatal(err)
		}
		logits := newRunner(t, ref.New(), m, len(f.IDs)).logits(t, f.IDs, len(f.IDs))
		last := logits[len(logits)-1]
		want := last[yes] - last[no]

		over["architectures"], over["answer_token_ids"] = json.RawMessage(`["Qwen3ForSequenceClassification"]`), json.RawMessage(`[7,40]`)
		s, err := OpenWith(written(t, "qwen3"), over)
		if err != nil {
			t.Fatal(err)
		}
		if c := s.Config(); c.Kind != Score || c.Labels != 1 {
			t.Fatalf("config %+v", c)
		}
		got := pooledRow(t, s, f.IDs)
		if d := abs(got[0]-want) / greatest(logits); len(got) != 1 || d > tolerance {
			t.Errorf("tied %s: the score is %v; the logits differ by %g", tied, got, want)
		}
		for _, m := range []*Model{m, s} {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// pooledRow runs one sequence of a model that embeds or scores.
func pooledRow(t *testing.T, m *Model, ids []int32) []float32 {
	t.Helper()
	be := ref.New()
	defer be.Close()
	specs := m.KVGroups(blockTokens, kernels.F32)
	q := kernels.Seq{Count: int32(len(ids)), Context: int32(len(ids))}
	for i := range specs {
		specs[i].Blocks = 16
		q.Blocks = append(q.Blocks, []int32{0, 1, 2, 3, 4, 5, 6, 7})
	}
	built, err := m.Build(be, BuildOptions{Format: kernels.FormatF32, KV: specs})
	if err != nil {
		t.Fatal(err)
	}
	exec, err := be.Compile(built.Program, kernels.Limits{Tokens: len(ids), Seqs: 1, Rows: 1})
	if err != nil {
		t.Fatal(err)
	}
	step := &kernels.Step{Tokens: ids, Seqs: []kernels.Seq{q}}
	for i := range ids {
		step.Positions = append(step.Positions, int32(i))
	}
	var out kernels.Result
	if err := exec.Run(step, &out); err != nil {
		t.Fatal(err)
	}
	return append([]float32(nil), out.Output[0]...)
}

// TestOverrides: replaced fields pass the checks of those that they replace.
func TestOverrides(t *testing.T) {
	dir := written(t, "qwen3")
	f := func(field, value, want string) {
		t.Helper()
		m, err := OpenWith(dir, Overrides{field: json.RawMessage(value)})
		if err == nil {
			_ = m.Close()
		}
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s = %s: got %v; want %q", field, value, err, want)
		}
	}
	f("rope_scaling", `{"rope_type":"yarn","factor":4,"original_max_position_embeddings":32}`, "")
	f("rope_scaling", `{"rope_type":"spiral"}`, `rope_type "spiral" is not known`)
	f("hidden_size", `-1`, "hidden_size is -1")
	f("architectures", `["Qwen9"]`, `architecture "Qwen9" is not supported`)
	f("answer_token_ids", `[1]`, "answer_token_ids are [1]; want two")
	f("answer_token_ids", `[1,5000]`, "answer_token_ids are [1 5000]; want two")
	f("matryoshka_dimensions", `[8,0]`, "matryoshka_dimensions is 0")
	if _, err := OpenWith("x.gguf", Overrides{"hidden_size": json.RawMessage("1")}); err == nil || !strings.Contains(err.Error(), "no config.json") {
		t.Errorf("got %v; want: no config.json", err)
	}
}

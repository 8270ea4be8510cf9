package model

import (
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
)

// blockTokens is the page size of the tests: small, so that short sequences
// span many pages.
const blockTokens = 16

// newCPU is the backend that the worker computes with.
func newCPU(t *testing.T) kernels.Backend {
	t.Helper()
	be, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return be
}

// runner is a model on a backend, in float32 throughout.
type runner struct {
	built  *Built
	exec   kernels.Executable
	groups int
	blocks int32 // pages a group
	vocab  int

	adapter int32 // of the sequence

	heard  []float32 // rows that a sequence brings; nil: the model hears nothing
	frames int       // that they are
}

// heardRows are some rows for a model that hears; nil for others.
func heardRows(m *Model) []float32 {
	h := m.Config().Hearing
	if h == nil {
		return nil
	}
	f := fixtureTensor{name: "heard", shape: []int{h.Rows * h.Width}, scale: 1, kind: "F32"}
	return decodeFloats(f.fill())
}

// hearing has a runner's sequences bring rows, where its model hears.
func (r *runner) hearing(m *Model, rows []float32) *runner {
	if h := m.Config().Hearing; h != nil {
		r.heard, r.frames = rows, h.Rows
	}
	return r
}

func newRunner(t *testing.T, be kernels.Backend, m *Model, tokens int) *runner {
	t.Helper()
	t.Cleanup(func() {
		if err := be.Close(); err != nil {
			t.Error(err)
		}
	})
	specs := m.KVGroups(blockTokens, kernels.F32)
	blocks := (tokens + blockTokens - 1) / blockTokens
	for i := range specs {
		specs[i].Blocks = 2 * blocks // more than needed, and not in order
	}
	last := int64(-1)
	built, err := m.Build(be, BuildOptions{Format: kernels.FormatF32, KV: specs, Progress: func(done, total int64) {
		if done < last || done > total {
			t.Errorf("progress went from %d to %d of %d", last, done, total)
		}
		last = done
	}})
	if err != nil {
		t.Fatal(err)
	}
	if last != m.read {
		t.Errorf("progress ended at %d of %d bytes", last, m.read)
	}
	r := (&runner{built: built, groups: len(specs), blocks: int32(2 * blocks), vocab: m.Config().Vocab}).hearing(m, heardRows(m))
	if r.exec, err = be.Compile(built.Program, kernels.Limits{Tokens: tokens, Seqs: 4, Rows: tokens, Frames: r.frames}); err != nil {
		t.Fatal(err)
	}
	return r
}

// logits runs one sequence, teacher-forced, in chunks of the given size, and
// returns the logits of every position.
func (r *runner) logits(t *testing.T, ids []int32, chunk int) [][]float32 {
	t.Helper()
	table := make([]int32, (len(ids)+blockTokens-1)/blockTokens)
	for i := range table {
		table[i] = (int32(i)*2 + 1) % r.blocks // every other page
	}
	tables := make([][]int32, r.groups)
	for i := range tables {
		tables[i] = table
	}
	var all [][]float32
	for first := 0; first < len(ids); first += chunk {
		part := ids[first:min(first+chunk, len(ids))]
		step := &kernels.Step{Tokens: part, WantLogits: true,
			Seqs: []kernels.Seq{{Count: int32(len(part)), Context: int32(first + len(part)), Blocks: tables, Adapter: r.adapter}}}
		if first == 0 {
			step.Seqs[0].Frames, step.Features = int32(r.frames), r.heard
		}
		for i := range part {
			step.Positions = append(step.Positions, int32(first+i))
			step.Rows = append(step.Rows, int32(i))
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

// tolerance is how far a logit may be from the reference, in parts of the
// greatest.
const tolerance = 1e-4

// greatest is the greatest magnitude of rows.
func greatest(rows [][]float32) float64 {
	most := 0.0
	for _, row := range rows {
		for _, v := range row {
			most = max(most, abs(v))
		}
	}
	return most
}

// difference is the greatest difference of two sets of rows, in parts of the
// greatest value of want.
func difference(got, want [][]float32) float64 {
	most := 0.0
	for i, row := range want {
		for j, v := range row {
			// A NaN is not below any tolerance.
			if d := abs(got[i][j] - v); d > most || d != d {
				most = d
			}
		}
	}
	return most / greatest(want)
}

// sameTokens compares the token that is greatest at each position, where the
// two greatest are further apart than the tolerance allows both sides to err.
func sameTokens(t *testing.T, got, want [][]float32) {
	t.Helper()
	margin, compared := 2*tolerance*greatest(want), 0
	for i, row := range want {
		best, second := 0, -1
		for j, v := range row {
			switch {
			case v > row[best]:
				best, second = j, best
			case j != best && (second < 0 || v > row[second]):
				second = j
			}
		}
		if float64(row[best]-row[second]) <= margin {
			continue
		}
		compared++
		for j, v := range got[i] {
			if j != best && v >= got[i][best] {
				t.Errorf("position %d: token %d is greedy; want %d", i, j, best)
				break
			}
		}
	}
	if compared < len(want)*9/10 {
		t.Errorf("only %d of %d positions tell one token from the next", compared, len(want))
	}
}

func abs(v float32) float64 { return float64(max(v, -v)) }

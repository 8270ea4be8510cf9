package model

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"roundhouse/kernels"
)

// A mutation takes something out of a program, and reports whether it was there.
type mutation struct {
	name  string
	spoil func(op kernels.Op) bool
}

// set changes a field that is not what it is set to.
func set[T comparable](field *T, to T) bool {
	was := *field
	*field = to
	return was != to
}

// off takes a weight away.
func off(w *kernels.Weight) bool {
	was := *w != nil
	*w = nil
	return was
}

// of is a mutation of one kind of operation.
func of[T kernels.Op](name string, spoil func(op T) bool) mutation {
	return mutation{name, func(op kernels.Op) bool {
		typed, ok := op.(T)
		return ok && spoil(typed)
	}}
}

// mutations are what a program can get wrong without a tensor being missing.
func mutations() []mutation {
	return []mutation{
		of("scale of embeddings", func(op *kernels.Embed) bool { return op.Scale != 1 && set(&op.Scale, 0) }),
		of("offset of norms", func(op *kernels.Norm) bool { return set(&op.Offset, 0) }),
		of("norms of heads", func(op *kernels.Norm) bool { return op.Width > 0 && off(&op.Weight) }),
		of("pairs of RoPE", func(op *kernels.RoPE) bool { op.Interleaved = !op.Interleaved; return true }),
		of("scale of RoPE", func(op *kernels.RoPE) bool { return op.Scale != 1 && set(&op.Scale, 0) }),
		of("columns of RoPE", func(op *kernels.RoPE) bool {
			if op.Rotary == 0 || op.Rotary == op.HeadDim || op.Start > 0 {
				return false
			}
			op.Rotary, op.InvFreq = op.Rotary/2, op.InvFreq[:op.Rotary/4]
			return true
		}),
		of("angles of RoPE", func(op *kernels.RoPE) bool {
			op.InvFreq = slices.Clone(op.InvFreq)
			op.InvFreq[len(op.InvFreq)/2] *= 2 // one that is neither the fastest nor the slowest
			return true
		}),
		of("window", func(op *kernels.Attention) bool { return set(&op.Window, 0) }),
		of("window longer by one", func(op *kernels.Attention) bool {
			if op.Window > 0 {
				op.Window++
			}
			return op.Window > 0
		}),
		of("sinks", func(op *kernels.Attention) bool { return off(&op.Sinks) }),
		of("scale of attention", func(op *kernels.Attention) bool { op.Scale *= 1.5; return true }),
		of("activation", func(op *kernels.Activate) bool {
			if op.Kind == kernels.SiLU {
				op.Kind = kernels.GELUTanh
			} else {
				op.Kind = kernels.SiLU
			}
			return true
		}),
		of("activation of experts", func(op *kernels.MoE) bool { op.Kind = kernels.ReLU; return true }),
		of("limit of experts", func(op *kernels.MoE) bool { return set(&op.Limit, 0.5) }),
		of("scores of experts", func(op *kernels.MoE) bool { op.Sigmoid = !op.Sigmoid; return true }),
		of("chosen experts", func(op *kernels.MoE) bool { op.Top++; return op.Top < len(op.GateUp) }),
		of("weights that sum to one", func(op *kernels.MoE) bool {
			op.Normalise = !op.Normalise
			return !op.TopFirst // softmax over the chosen sums to one anyway
		}),
		of("bias of the choice", func(op *kernels.MoE) bool { return off(&op.Bias) }),
		of("bias of the router", func(op *kernels.MoE) bool { return off(&op.RouterAdd) }),
		of("factor of experts", func(op *kernels.MoE) bool { return op.Scale != 1 && set(&op.Scale, 0) }),
		of("gates", func(op *kernels.Scale) bool { return set(&op.Gate, kernels.None) }),
		of("taps of the delta rule's memory", func(op *kernels.Delta) bool { op.ALog, op.DtBias = op.DtBias, op.ALog; return true }),
	}
}

// TestMutations: without any one of the things that a program has, the logits
// are at least a hundred times the tolerance away, so that the golden files
// would show it. Sequences are those of the golden files.
func TestMutations(t *testing.T) {
	seen := map[string]bool{}
	for i, arch := range architectures() {
		if arch.kind != Generate || arch.seeing || raceDetector && i > 0 {
			continue // those that see have the programs of their text models
		}
		f := readFixture(t, arch.fixture)
		m := openFixture(t, f.Config, f.Tensors)
		want := newRunner(t, newCPU(t), m, len(f.IDs)).logits(t, f.IDs, len(f.IDs))
		for _, mu := range mutations() {
			r, there := mutated(t, m, len(f.IDs), mu)
			if !there {
				continue
			}
			seen[mu.name] = true
			if d := difference(r.logits(t, f.IDs, len(f.IDs)), want); !(d >= 100*tolerance) {
				t.Errorf("%s without %s: logits differ by %.2g of the greatest; want at least %g", arch.name, mu.name, d, 100*tolerance)
			}
		}
	}
	for _, mu := range mutations() {
		if !seen[mu.name] && !raceDetector {
			t.Errorf("no architecture has %s", mu.name)
		}
	}
}

// mutated is a model whose program was spoilt before it was compiled.
func mutated(t *testing.T, m *Model, tokens int, mu mutation) (r *runner, there bool) {
	t.Helper()
	be := newCPU(t)
	t.Cleanup(func() { _ = be.Close() })
	specs := m.KVGroups(blockTokens, kernels.F32)
	blocks := (tokens + blockTokens - 1) / blockTokens
	for i := range specs {
		specs[i].Blocks = 2 * blocks
	}
	built, err := m.Build(be, BuildOptions{Format: kernels.FormatF32, KV: specs})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range built.Program.Ops {
		if mu.spoil(op) {
			there = true
		}
	}
	if !there {
		return nil, false
	}
	r = (&runner{built: built, groups: len(specs), blocks: int32(2 * blocks), vocab: m.Config().Vocab}).hearing(m, heardRows(m))
	if r.exec, err = be.Compile(built.Program, kernels.Limits{Tokens: tokens, Seqs: 1, Rows: tokens, Frames: r.frames}); err != nil {
		t.Fatalf("%s: %v", mu.name, err)
	}
	return r, true
}

// number is a layer's or an expert's in a tensor's name.
var number = regexp.MustCompile(`\.\d+\.`)

// TestTensorsMatter: every kind of tensor of a checkpoint moves the result by a
// hundred times the tolerance when all its numbers are the same.
func TestTensorsMatter(t *testing.T) {
	for i, arch := range architectures() {
		if arch.seeing || raceDetector && i > 0 {
			continue
		}
		name := arch.fixture
		var tensors []fixtureTensor
		var run func([]fixtureTensor) [][]float32
		if arch.kind == Generate {
			f := readFixture(t, name)
			tensors = f.Tensors
			run = func(list []fixtureTensor) [][]float32 {
				be, m := newCPU(t), openFixture(t, f.Config, list)
				r := newRunner(t, be, m, len(f.IDs))
				if h := m.Config().Hearing; h != nil {
					r.heard = hear(t, be, m, r.built, features(h, 0))
				}
				return r.logits(t, f.IDs, len(f.IDs))
			}
		} else {
			f := readPooledFixture(t, name)
			tensors = f.Tensors
			run = func(list []fixtureTensor) [][]float32 {
				return pooledRows(t, newCPU(t), f.folder(t, f.Config, list, f.Files), f.Sequences)
			}
		}
		want := run(tensors)
		for role, flat := range flattened(tensors) {
			if strings.HasSuffix(role, "key.bias") {
				continue // of an encoder: it shifts all scores of a query alike
			}
			if d := difference(run(flat), want); !(d >= 100*tolerance) {
				t.Errorf("%s with %s all the same: rows differ by %.2g of the greatest; want at least %g", arch.name, role, d, 100*tolerance)
			}
		}
	}
}

// flattened is the tensors with all numbers of one kind of tensor the same, by
// that kind.
func flattened(tensors []fixtureTensor) map[string][]fixtureTensor {
	out := map[string][]fixtureTensor{}
	for _, x := range tensors {
		role := number.ReplaceAllString(x.name, ".N.")
		if out[role] != nil || x.kind != "F32" {
			continue
		}
		flat := slices.Clone(tensors)
		for i := range flat {
			if number.ReplaceAllString(flat[i].name, ".N.") == role {
				flat[i].scale = 0
			}
		}
		out[role] = flat
	}
	return out
}

package kerneltest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
)

// scene builds one program for a backend. Two scenes of the same seed draw the
// same weights, so a program built on each is the same program.
type scene struct {
	t       testing.TB
	b       kernels.Backend
	rng     *rand.Rand
	p       *kernels.Program
	abs     bool // weights and inputs by magnitude, for Σ|a·b|
	missing bool // a format that the backend does not have was asked for
}

func newScene(t testing.TB, b kernels.Backend, seed uint64) *scene {
	return &scene{t: t, b: b, rng: rand.New(rand.NewPCG(seed, 1)), p: &kernels.Program{}}
}

// normal is n numbers of a normal distribution.
func (s *scene) normal(n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(s.rng.NormFloat64() * scale)
		if s.abs && x[i] < 0 {
			x[i] = -x[i]
		}
	}
	return x
}

// source wraps numbers as a float32 matrix that lies at an odd address.
func source(name string, out, in int, x []float32) kernels.Source {
	data := make([]byte, 1, 1+4*len(x))
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return kernels.Source{Name: name, Out: out, In: in, Type: kernels.F32, Data: data[1:]}
}

// add gives a source to the backend.
func (s *scene) add(src kernels.Source, format kernels.Format) kernels.Weight {
	s.t.Helper()
	w, err := s.b.Weight(src, format)
	if errors.Is(err, errors.ErrUnsupported) {
		s.missing = true
		return nil
	}
	if err != nil {
		s.t.Fatalf("%s: %v", s.b.Name(), err)
	}
	return w
}

// matrix is a random weight in a format.
func (s *scene) matrix(format kernels.Format, out, in int) kernels.Weight {
	s.t.Helper()
	switch format {
	case kernels.FormatGPTQ, kernels.FormatAWQ:
		return s.add(s.packed(format, out, in, 128), format)
	case kernels.FormatMXFP4:
		return s.add(s.mxfp4(out, in), format)
	}
	return s.add(source("random", out, in, s.normal(out*in, 1/math.Sqrt(float64(in)))), format)
}

// vector is a random vector around mean.
func (s *scene) vector(n int, mean float32) kernels.Weight {
	s.t.Helper()
	x := s.normal(n, 0.3)
	for i := range x {
		x[i] += mean
	}
	return s.add(source("vector", n, 1, x), kernels.FormatVector)
}

// packed is a random GPTQ or AWQ source.
func (s *scene) packed(format kernels.Format, out, in, group int) kernels.Source {
	groups := in / group
	src := kernels.Source{Name: "packed", Out: out, In: in, Type: kernels.Int32, Group: group, ScalesType: kernels.F16,
		Data: make([]byte, out*in/2), Zeros: make([]byte, out*groups/2)}
	for i := range src.Data {
		src.Data[i] = byte(s.rng.Uint32())
	}
	for i := range src.Zeros {
		src.Zeros[i] = byte(s.rng.Uint32())
	}
	for range out * groups {
		src.Scales = binary.LittleEndian.AppendUint16(src.Scales, num.F16(float32(0.01+0.01*s.rng.Float64())))
	}
	if format == kernels.FormatGPTQ {
		for _, k := range s.rng.Perm(in) {
			src.Order = binary.LittleEndian.AppendUint32(src.Order, uint32(k/group))
		}
	}
	return src
}

// bf16 is a random source in bfloat16, some of it too small to count.
func (s *scene) bf16(out, in int) kernels.Source {
	src := kernels.Source{Name: "bf16", Out: out, In: in, Type: kernels.BF16, Data: make([]byte, 1)}
	for i, x := range s.normal(out*in, 1) {
		if i%7 == 0 {
			x *= 1e-17
		}
		src.Data = binary.LittleEndian.AppendUint16(src.Data, num.BF16(x))
	}
	src.Data = src.Data[1:] // at an odd address
	return src
}

// blockFP8 is a random fp8 source with a scale for each 128 by 128 elements.
func (s *scene) blockFP8(out, in int) kernels.Source {
	src := kernels.Source{Name: "fp8", Out: out, In: in, Type: kernels.F8E4M3, Group: 128, GroupRows: 128, ScalesType: kernels.F32}
	for _, x := range s.normal(out*in, 30) {
		src.Data = append(src.Data, num.E4M3(x))
	}
	for range (out + 127) / 128 * ((in + 127) / 128) {
		src.Scales = binary.LittleEndian.AppendUint32(src.Scales, math.Float32bits(float32(0.001+0.002*s.rng.Float64())))
	}
	return src
}

// q4 is a random source in GGUF's Q4_0.
func (s *scene) q4(out, in int) kernels.Source {
	src := kernels.Source{Name: "q4_0", Out: out, In: in, Type: kernels.Q4_0}
	for range out * in / 32 {
		src.Data = binary.LittleEndian.AppendUint16(src.Data, num.F16(float32((0.01+0.01*s.rng.Float64())*float64(1-2*s.rng.IntN(2)))))
		for range 16 {
			src.Data = append(src.Data, byte(s.rng.Uint32()))
		}
	}
	return src
}

// mxfp4 is a random MXFP4 source.
func (s *scene) mxfp4(out, in int) kernels.Source {
	src := kernels.Source{Name: "mxfp4", Out: out, In: in, Type: kernels.UInt8, Data: make([]byte, out*in/2), Scales: make([]byte, out*in/32)}
	for i := range src.Data {
		src.Data[i] = byte(s.rng.Uint32())
		if s.abs {
			src.Data[i] &= 0x77
		}
	}
	for i := range src.Scales {
		src.Scales[i] = byte(118 + s.rng.IntN(5))
	}
	return src
}

// input is a value whose rows are rows of x, by the token ids of the step.
func (s *scene) input(x []float32, width int) kernels.Tensor {
	s.t.Helper()
	out := s.p.New(kernels.Tokens, width)
	s.p.Do(&kernels.Embed{Out: out, Table: s.add(source("input", len(x)/width, width, x), kernels.FormatF32)})
	return out
}

// random is an input of n random rows.
func (s *scene) random(n, width int) kernels.Tensor {
	s.t.Helper()
	return s.input(s.normal(n*width, 1), width)
}

// compile ends the scene.
func (s *scene) compile(limits kernels.Limits) kernels.Executable {
	s.t.Helper()
	e, err := s.b.Compile(s.p, limits)
	if err != nil {
		s.t.Fatalf("%s: %v", s.b.Name(), err)
	}
	return e
}

// rows is a step of n tokens with ids 0 to n-1, each a sequence of its own.
func rows(n int) *kernels.Step {
	s := &kernels.Step{}
	for i := range n {
		s.Tokens = append(s.Tokens, int32(i))
		s.Positions = append(s.Positions, int32(i))
		s.Seqs = append(s.Seqs, kernels.Seq{First: int32(i), Count: 1, Context: 1})
	}
	return s
}

// run executes a step and returns copies of its outputs.
func run(t testing.TB, e kernels.Executable, step *kernels.Step) (out [][]float32, choices []kernels.Choice) {
	t.Helper()
	var r kernels.Result
	if err := e.Run(step, &r); err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Output {
		out = append(out, append([]float32(nil), row...))
	}
	for _, row := range r.Logits {
		out = append(out, append([]float32(nil), row...))
	}
	for _, c := range r.Sampled {
		c.Top = append([]kernels.Candidate(nil), c.Top...)
		c.Probe = append([]float32(nil), c.Probe...)
		choices = append(choices, c)
	}
	return out, choices
}

// tolerance is how far a result may be from the reference's.
type tolerance struct {
	abs, rel float64
	sums     [][]float32 // Σ|a·b| of each, or nil
	ofSum    float64
}

// close compares two results.
func (tol tolerance) close(t testing.TB, got, want [][]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows; want %d", len(got), len(want))
	}
	for i := range want {
		for k, w := range want[i] {
			g, w := float64(got[i][k]), float64(w)
			bound := tol.abs + tol.rel*math.Abs(w)
			if tol.sums != nil {
				bound += tol.ofSum * float64(tol.sums[i][k])
			}
			if math.IsNaN(w) != math.IsNaN(g) || !math.IsNaN(w) && g != w && !(math.Abs(g-w) <= bound) {
				t.Fatalf("row %d column %d of %d: got %v; want %v within %.3g", i, k, len(want[i]), g, w, bound)
			}
		}
	}
}

// same compares two results bit by bit.
func same(t testing.TB, what string, got, want [][]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows; want %d", what, len(got), len(want))
	}
	for i := range want {
		for k := range want[i] {
			if math.Float32bits(got[i][k]) != math.Float32bits(want[i][k]) {
				t.Fatalf("%s: row %d column %d: got %v (%08x); want %v (%08x)", what, i, k,
					got[i][k], math.Float32bits(got[i][k]), want[i][k], math.Float32bits(want[i][k]))
			}
		}
	}
}

// limitsOf is the least limits that a step fits.
func limitsOf(step *kernels.Step) kernels.Limits {
	l := kernels.Limits{Tokens: len(step.Tokens), Seqs: len(step.Seqs), Rows: len(step.Rows)}
	for i := range step.Seqs {
		l.Frames += int(step.Seqs[i].Frames)
	}
	return l
}

// name makes the name of a subtest.
func name(format string, args ...any) string { return fmt.Sprintf(format, args...) }

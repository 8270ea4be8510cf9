//go:build pocl || intel

package model

import (
	"errors"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/xpu"
	"roundhouse/kernels/xpu/cl"
)

// newXPU is the GPU's backend on the first OpenCL device; PoCL makes one of every CPU.
func newXPU(t *testing.T, open func(xpu.Options) (*xpu.Backend, error)) kernels.Backend {
	t.Helper()
	lib, err := cl.Load("")
	if err != nil {
		t.Skipf("%v; for tests the package pocl-opencl-icd is enough", err)
	}
	devices, err := lib.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if len(devices) == 0 {
		t.Skip("no OpenCL driver; for tests the package pocl-opencl-icd is enough")
	}
	be, err := open(xpu.Options{Device: devices[0], Library: lib})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := be.Close(); err != nil {
			t.Error(err)
		}
	})
	return be
}

// kept is a backend that outlives those who close it.
type kept struct{ kernels.Backend }

func (kept) Close() error { return nil }

// TestGoldenXPU holds the GPU's kernels to the golden file of every architecture, and to
// the same bits however a prompt is cut.
func TestGoldenXPU(t *testing.T) { goldenXPU(t, newXPU(t, xpu.New)) }

func goldenXPU(t *testing.T, be kernels.Backend) {
	t.Helper()
	for _, arch := range architectures() {
		if arch.kind != Generate {
			continue
		}
		t.Run(arch.name, func(t *testing.T) {
			if arch.tower != nil && !arch.seeing {
				heardXPU(t, be, arch.fixture)
				return
			}
			if arch.tower != nil {
				readSeen(t, arch.fixture).golden(t, kept{be})
				return
			}
			f := readFixture(t, arch.fixture)
			m := openFixture(t, f.Config, f.Tensors)
			r := newRunner(t, kept{be}, m, len(f.IDs))
			whole := r.logits(t, f.IDs, len(f.IDs))
			if d := difference(whole, decodeRows(t, f.Logits, r.vocab)); !(d <= tolerance) {
				t.Errorf("logits differ by %.2g of the greatest; want at most %g", d, tolerance)
			}
			if d := difference(r.logits(t, f.IDs, 7), whole); d != 0 {
				t.Errorf("logits in chunks of 7 differ by %.2g from those in one piece", d)
			}
		})
	}
}

// heardXPU: what GPUs do not compute is refused before it runs.
func heardXPU(t *testing.T, be kernels.Backend, fixture string) {
	t.Helper()
	f := readFixture(t, fixture)
	m := openFixture(t, f.Config, f.Tensors)
	specs := m.KVGroups(blockTokens, kernels.F32)
	for i := range specs {
		specs[i].Blocks = 4
	}
	built, err := m.Build(be, BuildOptions{Format: kernels.FormatF32, KV: specs})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := be.Compile(built.Program, kernels.Limits{Tokens: 4, Seqs: 1, Rows: 1, Frames: 50}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v; want that it is not supported", err)
	}
}

// TestFormatsXPU: in every format the GPU's kernels compute what the CPU's do.
func TestFormatsXPU(t *testing.T) { formatsXPU(t, newXPU(t, xpu.New)) }

func formatsXPU(t *testing.T, be kernels.Backend) {
	t.Helper()
	host := newCPU(t)
	for _, name := range []string{"qwen3", "gemma3", "qwen3_moe", quantisedFixture} {
		f := readFixture(t, name)
		m := openFixture(t, f.Config, f.Tensors)
		for _, format := range []kernels.Format{kernels.FormatF32, kernels.FormatBF16, kernels.FormatF16, kernels.FormatInt8, kernels.FormatInt4, kernels.FormatFP8} {
			got, err := firstOn(be, m, format, f.IDs[0])
			want, errHost := firstOn(host, m, format, f.IDs[0])
			if errors.Is(err, errors.ErrUnsupported) && errors.Is(errHost, errors.ErrUnsupported) {
				continue // neither has it
			}
			if err != nil || errHost != nil {
				t.Fatalf("%s as %v: %v; on the CPU %v", name, format, err, errHost)
			}
			if d := difference([][]float32{got}, [][]float32{want}); !(d <= 5e-3) {
				t.Errorf("%s as %v: differs by %.2g of the greatest from the CPU", name, format, d)
			}
		}
	}
}

// firstOn runs the first token of a golden file on a backend.
func firstOn(be kernels.Backend, m *Model, format kernels.Format, id int32) ([]float32, error) {
	specs := m.KVGroups(blockTokens, kernels.BF16)
	q := kernels.Seq{Count: 1, Context: 1}
	for i := range specs {
		specs[i].Blocks = 1
		q.Blocks = append(q.Blocks, []int32{0})
	}
	built, err := m.Build(be, BuildOptions{Format: format, KV: specs})
	if err != nil {
		return nil, err
	}
	exec, err := be.Compile(built.Program, kernels.Limits{Tokens: 1, Seqs: 1, Rows: 1})
	if err != nil {
		return nil, err
	}
	var out kernels.Result
	step := &kernels.Step{Tokens: []int32{id}, Positions: []int32{0}, Rows: []int32{0}, WantLogits: true, Seqs: []kernels.Seq{q}}
	if err := exec.Run(step, &out); err != nil {
		return nil, err
	}
	return append([]float32{}, out.Logits[0]...), nil
}

// keptAdapting is kept with room for adapters.
type keptAdapting struct{ *xpu.Backend }

func (keptAdapting) Close() error { return nil }

// TestAdaptersXPU holds the GPU's kernels to what PEFT computes.
func TestAdaptersXPU(t *testing.T) {
	goldenAdapters(t, keptAdapting{newXPU(t, xpu.New).(*xpu.Backend)})
}

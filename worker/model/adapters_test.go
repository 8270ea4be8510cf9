package model

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
	"roundhouse/worker/lora"
)

// adaptedFixture is the golden file of a model with adapters; adapters.py says
// what is in it.
type adaptedFixture struct {
	fixture
	PEFT     string
	Adapters []adapterFixture
}

type adapterFixture struct {
	Name       string
	Config     map[string]any
	Tensors    []fixtureTensor
	Last       string
	Rounded    string
	Difference float64
}

// open reads the adapter from a folder in memory.
func (a *adapterFixture) open(t *testing.T) *lora.Adapter {
	t.Helper()
	config, err := json.Marshal(a.Config)
	if err != nil {
		t.Fatal(err)
	}
	got, err := lora.Open(fstest.MapFS{"adapter_config.json": {Data: config}, "adapter_model.safetensors": {Data: safetensors(a.Tensors)}})
	if err != nil {
		t.Fatalf("%s: %v", a.Name, err)
	}
	t.Cleanup(func() {
		if err := got.Close(); err != nil {
			t.Error(err)
		}
	})
	return got
}

// How far logits may be from PEFT's: with its operands rounded to bf16 as ours
// are, where one that lies between two of them may round to either; and as it
// computes, in float32.
const (
	roundedTolerance = 3e-3
	peftTolerance    = 2e-2
)

// adaptedRunner is the golden model with all of its adapters in their slots.
func adaptedRunner(t *testing.T, be kernels.Backend) (*runner, *adaptedFixture) {
	t.Helper()
	f := &adaptedFixture{}
	readJSON(t, "lora", f)
	m := openFixture(t, f.Config, f.fixture.Tensors)
	if err := m.MakeRoom(AdapterRoom{Slots: len(f.Adapters), Rank: 40}); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, be, m, len(f.IDs))
	for i := range f.Adapters {
		if err := r.built.Adapters.Load(i, f.Adapters[i].open(t)); err != nil {
			t.Fatal(err)
		}
	}
	return r, f
}

// goldenAdapters holds a backend to what PEFT computes: every linear, ranks and
// factors by pattern, and one module of a high rank; and the model as it is
// beside them.
func goldenAdapters(t *testing.T, be kernels.Backend) {
	t.Helper()
	r, f := adaptedRunner(t, be)
	plain := r.logits(t, f.IDs, len(f.IDs))
	if d := difference(plain, decodeRows(t, f.Logits, r.vocab)); !(d <= tolerance) {
		t.Errorf("without an adapter logits differ by %.2g of the greatest; want at most %g", d, tolerance)
	}
	for i, a := range f.Adapters {
		r.adapter = int32(i + 1)
		got := r.logits(t, f.IDs, len(f.IDs))
		for what, golden := range map[string]struct {
			rows string
			most float64
		}{"with rounded operands": {a.Rounded, roundedTolerance}, "in float32": {a.Last, peftTolerance}} {
			last := decodeRows(t, golden.rows, r.vocab)
			d := difference(got[len(got)-len(last):], last)
			t.Logf("%s, PEFT %s %s: greatest difference %.2g of the greatest logit", a.Name, f.PEFT, what, d)
			if !(d <= golden.most) {
				t.Errorf("%s: logits differ from PEFT's %s by %.2g of the greatest; want at most %g", a.Name, what, d, golden.most)
			}
		}
		if far := difference(got, plain); math.Abs(far-a.Difference) > 0.02*a.Difference {
			t.Errorf("%s: logits are %.4g from those without it; those of PEFT are %.4g", a.Name, far, a.Difference)
		}
		if d := difference(r.logits(t, f.IDs, 7), got); d != 0 {
			t.Errorf("%s: logits in chunks of 7 differ by %.2g from those in one piece", a.Name, d)
		}
	}
}

func TestAdapters(t *testing.T) {
	t.Run("reference", func(t *testing.T) { goldenAdapters(t, ref.New()) })
	t.Run("cpu", func(t *testing.T) { goldenAdapters(t, newCPU(t)) })
}

// TestAdaptersTogether: sequences of every adapter and of none in one step get
// the bits that each gets alone.
func TestAdaptersTogether(t *testing.T) {
	r, f := adaptedRunner(t, newCPU(t))
	const each = 16 // tokens: one page of each sequence
	ids := f.IDs[:each]
	step := &kernels.Step{WantLogits: true}
	var want [][]float32
	for adapter := range int32(4) {
		r.adapter = adapter
		want = append(want, r.logits(t, ids, each)...)
		q := kernels.Seq{First: int32(len(step.Tokens)), Count: each, Context: each, Adapter: adapter}
		for range r.groups {
			q.Blocks = append(q.Blocks, []int32{adapter})
		}
		for i := range each {
			step.Rows = append(step.Rows, int32(len(step.Tokens)))
			step.Tokens, step.Positions = append(step.Tokens, ids[i]), append(step.Positions, int32(i))
		}
		step.Seqs = append(step.Seqs, q)
	}
	var out kernels.Result
	if err := r.exec.Run(step, &out); err != nil {
		t.Fatal(err)
	}
	if d := difference(out.Logits, want); d != 0 {
		t.Errorf("in one step logits differ by %.2g from those of each alone", d)
	}
}

// TestAdapterRefused has adapters that do not fit the model.
func TestAdapterRefused(t *testing.T) {
	r, f := adaptedRunner(t, newCPU(t))
	refused := func(want string, change func(a *adapterFixture)) {
		t.Helper()
		a := f.Adapters[2]
		a.Tensors = append([]fixtureTensor(nil), a.Tensors...)
		change(&a)
		err := r.built.Adapters.Load(0, a.open(t))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v; want one with %q", err, want)
		}
	}
	rename := func(from, to string) func(a *adapterFixture) {
		return func(a *adapterFixture) {
			for i := range a.Tensors {
				a.Tensors[i].name = strings.ReplaceAll(a.Tensors[i].name, from, to)
			}
		}
	}
	refused("only such as q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj", rename("mlp.up_proj", "lm_head"))
	refused("layers.9.mlp.up_proj", rename("layers.3", "layers.9"))
	refused("want 96 columns", rename("up_proj", "down_proj"))
	refused("room for rank 40 (--max-lora-rank)", func(a *adapterFixture) {
		a.Config = map[string]any{"peft_type": "LORA", "r": 41}
		for i := range a.Tensors {
			s := append([]int(nil), a.Tensors[i].shape...)
			s[i%2] = 41 // A, then B of each module
			a.Tensors[i].shape = s
		}
	})
	refused("is not a finite number", func(a *adapterFixture) { a.Tensors[0].base = float32(math.NaN()) })

	// After what was refused the slot is empty.
	r.adapter = 1
	got := r.logits(t, f.IDs, len(f.IDs))
	r.adapter = 0
	if d := difference(got, r.logits(t, f.IDs, len(f.IDs))); d != 0 {
		t.Errorf("logits of a slot whose adapter was refused differ by %.2g from those of the model", d)
	}

	m := shapedModel(t, architectures()[0], plannedShape())
	if err := m.MakeRoom(AdapterRoom{Slots: 1, Rank: 300}); err == nil {
		t.Error("a rank of 300 was accepted")
	}
}

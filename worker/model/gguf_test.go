package model

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"testing"
	"testing/fstest"

	"roundhouse/kernels/num"
	"roundhouse/worker/gguf"
)

// ggufFixture is a golden file of a GGUF model; gguf_fixtures.py says what is
// in it.
type ggufFixture struct {
	Transformers string
	Values       map[string]ggufValue
	Tensors      []ggufTensor
	Checksum     uint32
	IDs          []int32
	Logits       string
	Variants     []struct {
		Name       string
		Values     map[string]ggufValue
		Tensors    []ggufTensor
		Without    []string
		Last       string
		Difference float64
	}
}

// ggufValue is ["uint32", 7].
type ggufValue struct{ value gguf.Value }

func (v *ggufValue) UnmarshalJSON(data []byte) error {
	var kind string
	var raw json.RawMessage
	if err := json.Unmarshal(data, &[]any{&kind, &raw}); err != nil {
		return err
	}
	switch kind {
	case "uint32":
		var n uint32
		defer func() { v.value = n }()
		return json.Unmarshal(raw, &n)
	case "float32":
		var f float32
		defer func() { v.value = f }()
		return json.Unmarshal(raw, &f)
	}
	var s string
	defer func() { v.value = s }()
	return json.Unmarshal(raw, &s)
}

// ggufTensor is [name, shape, type, base, scale], or has its numbers in the
// place of the base.
type ggufTensor struct {
	name        string
	shape       []int
	kind        string
	base, scale float32
	numbers     []float32
}

func (t *ggufTensor) UnmarshalJSON(data []byte) error {
	var base json.RawMessage
	if err := json.Unmarshal(data, &[]any{&t.name, &t.shape, &t.kind, &base, &t.scale}); err != nil {
		return err
	}
	if base[0] == '[' {
		return json.Unmarshal(base, &t.numbers)
	}
	return json.Unmarshal(base, &t.base)
}

// ggufKinds are the types of a file by name.
var ggufKinds = map[string]gguf.Type{"F32": gguf.F32, "F16": gguf.F16, "BF16": gguf.BF16,
	"Q4_0": gguf.Q4_0, "Q4_1": gguf.Q4_1, "Q5_0": gguf.Q5_0, "Q5_1": gguf.Q5_1, "Q8_0": gguf.Q8_0,
	"Q2_K": gguf.Q2_K, "Q3_K": gguf.Q3_K, "Q4_K": gguf.Q4_K, "Q5_K": gguf.Q5_K, "Q6_K": gguf.Q6_K, "IQ4_NL": gguf.IQ4_NL, "IQ4_XS": gguf.IQ4_XS}

// ggufBlocks has each type's scale that makes the greatest number about 1, where in a
// block it lies, and the second scale as a multiple of it; 0: there is none.
var ggufBlocks = map[gguf.Type]struct {
	unit   float64
	at     int
	second float32
}{
	gguf.Q4_0: {1.0 / 8, 0, 0}, gguf.Q4_1: {1.0 / 8, 0, -7.5}, gguf.Q5_0: {1.0 / 16, 0, 0}, gguf.Q5_1: {1.0 / 16, 0, -15.5}, gguf.Q8_0: {1.0 / 128, 0, 0},
	gguf.Q2_K: {1 / 22.5, 80, 1.5}, gguf.Q3_K: {1.0 / 128, 108, 0}, gguf.Q4_K: {1 / 472.5, 0, 7.5}, gguf.Q5_K: {1 / 976.5, 0, 15.5}, gguf.Q6_K: {1.0 / 1024, 208, 0},
	gguf.IQ4_NL: {1.0 / 128, 0, 0}, gguf.IQ4_XS: {1.0 / 4096, 0, 0},
}

// content fills the tensor, as gguf_fixtures.py does.
func (t *ggufTensor) content() gguf.Content {
	kind := ggufKinds[t.kind]
	c := gguf.Content{Name: t.name, Type: kind, Shape: t.shape}
	n := 1
	for _, d := range t.shape {
		n *= d
	}
	each, size := kind.Block()
	if each == 1 {
		numbers := t.numbers
		if numbers == nil {
			numbers = floatsOf((&fixtureTensor{name: t.name, shape: t.shape, base: t.base, scale: t.scale}).fill())
		}
		for _, v := range numbers {
			switch kind {
			case gguf.F32:
				c.Data = binary.LittleEndian.AppendUint32(c.Data, math.Float32bits(v))
			case gguf.F16:
				c.Data = binary.LittleEndian.AppendUint16(c.Data, num.F16(v))
			default:
				c.Data = binary.LittleEndian.AppendUint16(c.Data, num.BF16(v))
			}
		}
		return c
	}
	blocks := n / each
	form := ggufBlocks[kind]
	for i := range (blocks*size + 7) / 8 {
		c.Data = binary.LittleEndian.AppendUint64(c.Data, fixtureBits(t.name, i))
	}
	c.Data = c.Data[:blocks*size]
	scales := floatsOf((&fixtureTensor{name: t.name + ".d", shape: []int{blocks}, scale: 1}).fill())
	for b, u := range scales {
		block := c.Data[b*size+form.at:]
		d := num.F16(float32(float64(t.scale)*form.unit) * (1 + 0.25*u))
		binary.LittleEndian.PutUint16(block, d)
		if form.second != 0 {
			binary.LittleEndian.PutUint16(block[2:], num.F16(num.FromF16(d)*form.second))
		}
	}
	return c
}

// ggufModel opens a file of values and tensors.
func ggufModel(t *testing.T, values map[string]ggufValue, contents []gguf.Content) *Model {
	t.Helper()
	plain := map[string]gguf.Value{}
	for key, v := range values {
		plain[key] = v.value
	}
	return openGGUFFixture(t, plain, contents)
}

func openGGUFFixture(t *testing.T, values map[string]gguf.Value, contents []gguf.Content) *Model {
	t.Helper()
	m, err := OpenGGUFFS(fstest.MapFS{"m.gguf": {Data: gguf.Encode(values, contents)}}, "m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// TestGGUF holds GGUF files, with every type of block in every place, to what
// transformers makes of them.
func TestGGUF(t *testing.T) {
	for _, arch := range architectures() {
		if arch.gguf == nil {
			continue
		}
		t.Run(arch.fixture, func(t *testing.T) {
			f := &ggufFixture{}
			readJSON(t, "gguf_"+arch.fixture, f)
			var contents []gguf.Content
			sum, made := crc32.NewIEEE(), map[string]gguf.Content{}
			for _, x := range f.Tensors {
				made[x.name] = x.content()
				sum.Write(made[x.name].Data)
				contents = append(contents, made[x.name])
			}
			if sum.Sum32() != f.Checksum {
				t.Fatalf("the tensors are not those of gguf_fixtures.py: checksum %d, not %d", sum.Sum32(), f.Checksum)
			}
			m := ggufModel(t, f.Values, contents)
			if m.Config().Architecture != arch.name {
				t.Fatalf("%q is %s; want %s", arch.gguf.arch, m.Config().Architecture, arch.name)
			}
			r := newRunner(t, newCPU(t), m, len(f.IDs))
			want := decodeRows(t, f.Logits, r.vocab)
			got := r.logits(t, f.IDs, len(f.IDs))
			d := difference(got, want)
			t.Logf("transformers %s: greatest difference %.2g of the greatest logit, %.3g", f.Transformers, d, greatest(want))
			if !(d <= tolerance) {
				t.Errorf("logits differ by %.2g of the greatest; want at most %g", d, tolerance)
			}
			sameTokens(t, got, want)
			for _, v := range f.Variants {
				values := maps.Clone(f.Values)
				maps.Copy(values, v.Values)
				var changed []gguf.Content
				for _, x := range f.Tensors {
					named := func(n ggufTensor) bool { return n.name == x.name }
					if !slices.Contains(v.Without, x.name) && !slices.ContainsFunc(v.Tensors, named) {
						changed = append(changed, made[x.name])
					}
				}
				for _, x := range v.Tensors {
					changed = append(changed, x.content())
				}
				r := newRunner(t, newCPU(t), ggufModel(t, values, changed), len(f.IDs))
				last := decodeRows(t, v.Last, r.vocab)
				got := r.logits(t, f.IDs, len(f.IDs))
				if d := difference(got[len(got)-len(last):], last); !(d <= tolerance) {
					t.Errorf("%s: logits differ by %.2g of the greatest; want at most %g", v.Name, d, tolerance)
				}
				if far := difference(got, want); far < 100*tolerance || math.Abs(far-v.Difference) > 0.01*v.Difference {
					t.Errorf("%s: logits are %.4g from those without the change; those of transformers are %.4g", v.Name, far, v.Difference)
				}
			}
		})
	}
}

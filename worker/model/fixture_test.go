package model

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"roundhouse/kernels/num"
	"roundhouse/kernels/ref"
)

// fixture is a golden file of testdata; fixtures.py says what is in it.
type fixture struct {
	Transformers string
	Config       map[string]any
	Tensors      []fixtureTensor
	IDs          []int32
	Logits       string
	Variants     []variant
}

// variant is the configuration with one setting changed.
type variant struct {
	Name       string
	Patch      map[string]any
	Tensors    []fixtureTensor
	Without    []string
	Last       string
	Difference float64
}

// config is the changed configuration. A patch of text_config changes fields
// of it.
func (v *variant) config(f *fixture) map[string]any {
	config := maps.Clone(f.Config)
	for key, value := range v.Patch {
		if fields, ok := value.(map[string]any); ok && key == "text_config" {
			text := maps.Clone(config[key].(map[string]any))
			maps.Copy(text, fields)
			value = text
		}
		config[key] = value
	}
	return config
}

// changed is what the variant's tensors are.
func (v *variant) changed(f *fixture) []fixtureTensor {
	tensors := slices.Clone(v.Tensors)
	for _, old := range f.Tensors {
		if !slices.Contains(v.Without, old.name) && !slices.ContainsFunc(tensors, func(n fixtureTensor) bool { return n.name == old.name }) {
			tensors = append(tensors, old)
		}
	}
	return tensors
}

// fixtureTensor is [name, shape, base, scale] or [name, shape, base, scale, kind],
// with the kinds of numbers in fixtures.py.
type fixtureTensor struct {
	name        string
	shape       []int
	base, scale float32
	kind        string
}

func (f *fixtureTensor) UnmarshalJSON(data []byte) error {
	f.kind = "F32"
	return json.Unmarshal(data, &[]any{&f.name, &f.shape, &f.base, &f.scale, &f.kind})
}

func readFixture(t *testing.T, name string) *fixture {
	t.Helper()
	f := &fixture{}
	readJSON(t, name, f)
	return f
}

// readJSON reads a golden file.
func readJSON(t testing.TB, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// fill gives the tensor its numbers, as fixtures.py does: splitmix64 over
// FNV-1a of the name, 24 bits, from -1 to 1.
func (f *fixtureTensor) fill() []byte {
	n := 1
	for _, d := range f.shape {
		n *= d
	}
	data := make([]byte, 0, 4*n)
	for i := range n {
		z := fixtureBits(f.name, i)
		u := float32(z>>40)*float32(1.0/(1<<23)) - 1
		word := uint32(z >> 32)
		switch value := f.base + float32(f.scale*u); f.kind {
		case "U8":
			data = append(data, byte(f.base+float32(math.Floor(float64((u*0.5+0.5)*f.scale)))))
		case "F8_E4M3":
			data = append(data, byte(word&0x8f+0x28))
		case "F16":
			data = binary.LittleEndian.AppendUint16(data, num.F16(value))
		case "I32":
			data = binary.LittleEndian.AppendUint32(data, word)
		case "ZEROS":
			data = binary.LittleEndian.AppendUint32(data, word&0x33333333+0x44444444)
		case "GROUPS":
			data = binary.LittleEndian.AppendUint32(data, uint32(i)%uint32(f.scale))
		case "SORTED":
			each := uint32(f.scale)
			if each == 0 {
				each = 128
			}
			data = binary.LittleEndian.AppendUint32(data, uint32(i)/each)
		case "SHAPE":
			data = binary.LittleEndian.AppendUint64(data, uint64([]float32{f.base, f.scale}[i]))
		default:
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(value))
		}
	}
	return data
}

// fixtureBits is the i-th word of the hash that fixtures are made of.
func fixtureBits(name string, i int) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, b := range []byte(name) {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	z := h + uint64(i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// dtype is the type of the tensor in its file.
func (f *fixtureTensor) dtype() string {
	switch f.kind {
	case "ZEROS", "GROUPS", "SORTED":
		return "I32"
	case "SHAPE":
		return "I64"
	}
	return f.kind
}

// safetensors writes tensors as a file.
func safetensors(tensors []fixtureTensor) []byte {
	header, data := map[string]any{}, bytes.Buffer{}
	for _, t := range tensors {
		begin := data.Len()
		data.Write(t.fill())
		header[t.name] = map[string]any{"dtype": t.dtype(), "shape": t.shape, "data_offsets": []int{begin, data.Len()}}
	}
	head, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	return append(append(out, head...), data.Bytes()...)
}

// folder is a model's folder in memory.
func folder(t *testing.T, config map[string]any, tensors []fixtureTensor) fstest.MapFS {
	t.Helper()
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"config.json": {Data: data}, "model.safetensors": {Data: safetensors(tensors)}}
}

// decodeRows is the rows of the given width that base64 of float32 stands for.
func decodeRows(t *testing.T, text string, width int) [][]float32 {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]float32
	for len(data) > 0 {
		row := make([]float32, width)
		for i := range row {
			row[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		rows, data = append(rows, row), data[4*width:]
	}
	return rows
}

// decodeFloats is the numbers of a tensor's bytes.
func decodeFloats(data []byte) []float32 {
	x := make([]float32, len(data)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return x
}

// TestGolden holds every architecture that generates to its golden file.
func TestGolden(t *testing.T) {
	for _, arch := range architectures() {
		if arch.kind == Generate && arch.tower == nil { // see TestGoldenVision
			t.Run(arch.name, func(t *testing.T) { golden(t, arch.name, arch.fixture) })
		}
	}
}

// TestGoldenQuantised: checkpoints that are quantised already, worked out to
// float32, are what their layouts mean.
func TestGoldenQuantised(t *testing.T) {
	t.Run("linears", func(t *testing.T) { golden(t, "Qwen3ForCausalLM", quantisedFixture) })
	t.Run("groups", func(t *testing.T) { golden(t, "Qwen3ForCausalLM", quantisedGroups) })
	t.Run("experts", func(t *testing.T) { golden(t, "Qwen3MoeForCausalLM", quantisedExperts) })
}

const (
	quantisedFixture = "quantised"
	quantisedExperts = "quantised_experts"
	quantisedGroups  = "quantised_groups"
)

func golden(t *testing.T, arch, name string) {
	f := readFixture(t, name)
	if names := f.Config["architectures"].([]any); names[0] != arch {
		t.Fatalf("testdata/%s.json is of %s", name, names[0])
	}
	m := openFixture(t, f.Config, f.Tensors)
	r := newRunner(t, ref.New(), m, len(f.IDs))
	want := decodeRows(t, f.Logits, r.vocab)
	// In one piece, then in pieces that are no multiple of a page: a prompt
	// gives the same logits to the last bit.
	whole := r.logits(t, f.IDs, len(f.IDs))
	d := difference(whole, want)
	t.Logf("transformers %s: greatest difference %.2g of the greatest logit, %.3g", f.Transformers, d, greatest(want))
	if !(d <= tolerance) {
		t.Errorf("logits differ by %.2g of the greatest; want at most %g", d, tolerance)
	}
	sameTokens(t, whole, want)
	if pieces := r.logits(t, f.IDs, 7); difference(pieces, whole) != 0 {
		t.Errorf("logits in chunks of 7 differ by %.2g from those in one piece", difference(pieces, whole))
	}
	for _, v := range f.Variants {
		t.Run(v.Name, func(t *testing.T) {
			m := openFixture(t, v.config(f), v.changed(f))
			r := newRunner(t, newCPU(t), m, len(f.IDs)) // many, and the reference is slow
			last := decodeRows(t, v.Last, r.vocab)
			got := r.logits(t, f.IDs, len(f.IDs))
			if d := difference(got[len(got)-len(last):], last); !(d <= tolerance) {
				t.Errorf("logits differ by %.2g of the greatest; want at most %g", d, tolerance)
			}
			if far := difference(got, want); far < 100*tolerance || math.Abs(far-v.Difference) > 0.01*v.Difference {
				t.Errorf("logits are %.4g from those without the change; those of transformers are %.4g", far, v.Difference)
			}
		})
	}
}

// TestGoldenCPU holds the backend that the worker computes with to the same
// golden files, and to the same bits however a prompt is cut.
func TestGoldenCPU(t *testing.T) {
	for _, arch := range architectures() {
		if arch.kind != Generate || arch.tower != nil {
			continue
		}
		f := readFixture(t, arch.fixture)
		m := openFixture(t, f.Config, f.Tensors)
		r := newRunner(t, newCPU(t), m, len(f.IDs))
		whole := r.logits(t, f.IDs, len(f.IDs))
		if d := difference(whole, decodeRows(t, f.Logits, r.vocab)); !(d <= tolerance) {
			t.Errorf("%s: logits differ by %.2g of the greatest; want at most %g", arch.name, d, tolerance)
		}
		if d := difference(r.logits(t, f.IDs, 7), whole); d != 0 {
			t.Errorf("%s: logits in chunks of 7 differ by %.2g from those in one piece", arch.name, d)
		}
	}
}

func openFixture(t *testing.T, config map[string]any, tensors []fixtureTensor) *Model {
	t.Helper()
	m, err := OpenFS(folder(t, config, tensors))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// fixtureProbe is the start of the tensor x with base 0 and scale 1.
const fixtureProbe = "3cfb18bf38f71d3f"

// TestFixtureTensors holds the numbers that the golden files were made with.
func TestFixtureTensors(t *testing.T) {
	f := fixtureTensor{name: "x", shape: []int{2}, scale: 1, kind: "F32"}
	if got := fmt.Sprintf("%x", f.fill()); got != fixtureProbe {
		t.Fatalf("the tensor x begins with %s; in fixtures.py with %s", got, fixtureProbe)
	}
}

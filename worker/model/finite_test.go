package model

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/ref"
)

func TestFinite(t *testing.T) {
	f := func(typ kernels.DType, bits []uint32, want int) {
		t.Helper()
		var data []byte
		for _, b := range bits {
			if typ == kernels.F32 {
				data = binary.LittleEndian.AppendUint32(data, b)
			} else {
				data = binary.LittleEndian.AppendUint16(data, uint16(b))
			}
		}
		if got := finite(data, typ); got != want {
			t.Errorf("%v, %d of them, %x...: %d; want %d", typ, len(bits), bits[:min(8, len(bits))], got, want)
		}
	}
	f(kernels.F32, nil, -1)
	f(kernels.F32, []uint32{0, 0x80000000, 0x7f7fffff, 0xff7fffff, 1}, -1)
	f(kernels.F32, []uint32{0, 0, 0x7f800000}, 2)
	f(kernels.F32, []uint32{0, 0xffc00000, 0x7f800000, 0}, 1)
	f(kernels.BF16, []uint32{0xffff & 0xff7f, 0x7f7f, 0x0001, 0x8000, 0x3f80}, -1)
	f(kernels.BF16, []uint32{0, 0, 0, 0, 0, 0xff80}, 5)
	f(kernels.BF16, []uint32{0, 0, 0, 0x7fc0}, 3)
	f(kernels.F16, []uint32{0x7bff, 0xfbff, 0x0001, 0x8000, 0x3c00}, -1)
	f(kernels.F16, []uint32{0x7c00}, 0)
	f(kernels.F16, []uint32{0, 0, 0xfe00, 0}, 2)

	// Matrices of several threads: the first of two is told, wherever it lies.
	for _, n := range []int{3 << 20, 3<<20 + 17} {
		bits := make([]uint32, n)
		f(kernels.BF16, bits, -1)
		for _, at := range []int{0, 31, 1 << 20, n/2 + 5, n - 1} {
			bits[at], bits[n-1] = 0x7f80, 0xffc0
			f(kernels.BF16, bits, at)
			bits[at], bits[n-1] = 0, 0
		}
	}
}

// TestNotFinite is case 91: a weight that is NaN poisons every answer, so the
// load ends with its name.
func TestNotFinite(t *testing.T) {
	base := readFixture(t, "llama")
	tensors := append([]fixtureTensor(nil), base.Tensors...)
	fsys := folder(t, base.Config, tensors)
	data := fsys["model.safetensors"].Data
	binary.LittleEndian.PutUint32(data[len(data)-4:], math.Float32bits(float32(math.NaN())))
	m, err := OpenFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	specs := m.KVGroups(16, kernels.F32)
	specs[0].Blocks = 1
	_, err = m.Build(ref.New(), BuildOptions{Format: kernels.FormatF32, KV: specs})
	last := base.Tensors[len(base.Tensors)-1]
	if err == nil || !strings.Contains(err.Error(), last.name) || !strings.Contains(err.Error(), "model.safetensors") || !strings.Contains(err.Error(), "not a finite number") {
		t.Fatalf("got %v; want %s and model.safetensors", err, last.name)
	}
}

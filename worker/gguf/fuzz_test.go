package gguf

import "testing"

// FuzzParse: no file makes the reader fail otherwise than by an error, and what
// it accepts lies within the file and does not overlap.
func FuzzParse(f *testing.F) {
	whole := Encode(map[string]Value{"general.architecture": "llama", "a.words": []string{"x", "y"}, "a.n": uint32(3)},
		[]Content{{Name: "m", Type: Q4_0, Shape: []int{1, 32}, Data: make([]byte, 18)}, {Name: "v", Type: F32, Shape: []int{2}, Data: make([]byte, 8)}})
	f.Add(whole)
	f.Add(whole[:len(whole)-9])
	f.Add(fixed(3, 1, 1).b)
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		if err != nil {
			return
		}
		covered := make([]bool, len(data))
		for _, tensor := range file.Tensors {
			if tensor.Begin < 0 || tensor.End > int64(len(data)) || tensor.Begin > tensor.End {
				t.Fatalf("tensor %+v of a file of %d bytes", tensor, len(data))
			}
			for i := tensor.Begin; i < tensor.End; i++ {
				if covered[i] {
					t.Fatalf("byte %d belongs to two tensors", i)
				}
				covered[i] = true
			}
		}
	})
}

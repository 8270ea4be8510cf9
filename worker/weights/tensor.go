package weights

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// DType is the stored type of a tensor, spelled as safetensors does.
type DType string

// The types of safetensors. All can be listed and read as bytes; which of
// them a model can use is the model's to say.
const (
	Bool    DType = "BOOL"
	F4      DType = "F4"
	F6E2M3  DType = "F6_E2M3"
	F6E3M2  DType = "F6_E3M2"
	U8      DType = "U8"
	I8      DType = "I8"
	F8E5M2  DType = "F8_E5M2"
	F8E4M3  DType = "F8_E4M3"
	F8E8M0  DType = "F8_E8M0"
	I16     DType = "I16"
	U16     DType = "U16"
	F16     DType = "F16"
	BF16    DType = "BF16"
	I32     DType = "I32"
	U32     DType = "U32"
	F32     DType = "F32"
	F64     DType = "F64"
	I64     DType = "I64"
	U64     DType = "U64"
	Complex DType = "C64"
)

// The types of GGUF that are blocks: numbers with their scales.
const (
	Q4_0   DType = "Q4_0"
	Q4_1   DType = "Q4_1"
	Q5_0   DType = "Q5_0"
	Q5_1   DType = "Q5_1"
	Q8_0   DType = "Q8_0"
	Q2_K   DType = "Q2_K"
	Q3_K   DType = "Q3_K"
	Q4_K   DType = "Q4_K"
	Q5_K   DType = "Q5_K"
	Q6_K   DType = "Q6_K"
	IQ4_NL DType = "IQ4_NL"
	IQ4_XS DType = "IQ4_XS"
)

// Bits is the size of one element, and 0 for a type that safetensors does not
// have.
func (t DType) Bits() int {
	switch t {
	case F4:
		return 4
	case F6E2M3, F6E3M2:
		return 6
	case Bool, U8, I8, F8E5M2, F8E4M3, F8E8M0:
		return 8
	case I16, U16, F16, BF16:
		return 16
	case I32, U32, F32:
		return 32
	case F64, I64, U64, Complex:
		return 64
	}
	return 0
}

// Tensor is one tensor of a set: where it lies, not what it holds.
type Tensor struct {
	Name  string
	Type  DType
	Shape []int // empty for a scalar

	file       *file
	begin, end int64 // within the file
}

// File is the name of the file that holds the tensor.
func (t *Tensor) File() string { return t.file.name }

// Bytes is the size of the tensor's data.
func (t *Tensor) Bytes() int64 { return t.end - t.begin }

// Elements is the product of the dimensions.
func (t *Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= int64(d)
	}
	return n
}

// Data returns the tensor's bytes, row-major and little-endian. They stay
// valid until the set is closed, and must not be written to.
func (t *Tensor) Data() ([]byte, error) {
	data := t.file.data[t.begin:t.end]
	if t.file.mapped {
		if err := touch(data); err != nil {
			return nil, fmt.Errorf("%s: tensor %q: the file was cut short while it was being read; put it back whole and start again", t.file.name, t.Name)
		}
	}
	return data, nil
}

// dataSize is the number of bytes of a tensor. ok is false when a product
// overflows or the last byte would be shared with another tensor.
func dataSize(t DType, shape []int) (size int64, ok bool) {
	if slices.Contains(shape, 0) {
		return 0, true
	}
	n := uint64(1)
	for _, d := range shape {
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 {
			return 0, false
		}
		n = lo
	}
	hi, lo := bits.Mul64(n, uint64(t.Bits()))
	if hi != 0 || lo%8 != 0 || lo/8 > math.MaxInt64 {
		return 0, false
	}
	return int64(lo / 8), true
}

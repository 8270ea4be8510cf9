package gguf

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
	"strings"
)

// Type is how a tensor's numbers are stored, by its number in a file.
type Type uint32

// The types that are read. There are others; see ErrType.
const (
	F32    Type = 0
	F16    Type = 1
	Q4_0   Type = 2
	Q4_1   Type = 3
	Q5_0   Type = 6
	Q5_1   Type = 7
	Q8_0   Type = 8
	Q2_K   Type = 10
	Q3_K   Type = 11
	Q4_K   Type = 12
	Q5_K   Type = 13
	Q6_K   Type = 14
	IQ4_NL Type = 20
	IQ4_XS Type = 23
	BF16   Type = 30
)

// types are those that are read.
var types = [...]struct {
	kind            Type
	name            string
	elements, bytes uint64 // of a block
}{
	{F32, "F32", 1, 4}, {F16, "F16", 1, 2}, {BF16, "BF16", 1, 2},
	{Q4_0, "Q4_0", 32, 18}, {Q4_1, "Q4_1", 32, 20}, {Q5_0, "Q5_0", 32, 22}, {Q5_1, "Q5_1", 32, 24}, {Q8_0, "Q8_0", 32, 34},
	{Q2_K, "Q2_K", 256, 84}, {Q3_K, "Q3_K", 256, 110}, {Q4_K, "Q4_K", 256, 144}, {Q5_K, "Q5_K", 256, 176}, {Q6_K, "Q6_K", 256, 210},
	{IQ4_NL, "IQ4_NL", 32, 18}, {IQ4_XS, "IQ4_XS", 256, 136},
}

// otherNames are those of types that are not read, for errors.
var otherNames = map[Type]string{9: "Q8_1", 15: "Q8_K",
	16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 21: "IQ3_S", 22: "IQ2_S",
	24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4"}

// supported are the names of the types that are read.
func supported() string {
	var names []string
	for _, t := range types {
		names = append(names, t.name)
	}
	return strings.Join(names, ", ")
}

// Block is how many numbers are stored together, in how many bytes; 0 for a
// type that is not read.
func (t Type) Block() (elements, bytes int) {
	for _, known := range types {
		if known.kind == t {
			return int(known.elements), int(known.bytes)
		}
	}
	return 0, 0
}

// String is the type's name.
func (t Type) String() string {
	for _, known := range types {
		if known.kind == t {
			return known.name
		}
	}
	if name, ok := otherNames[t]; ok {
		return name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Tensor is where a tensor lies, not what it holds.
type Tensor struct {
	Name  string
	Type  Type
	Shape []int // row-major, outermost first: the reverse of what the file has

	Begin, End int64 // within the file
}

// Bounds of a tensor, as those who define the format have them.
const (
	maxDims = 4
	maxName = 64 // bytes
)

// size is the number of bytes of a tensor with these dimensions, innermost
// first.
func (t Type) size(dims []uint64) (uint64, error) {
	elements, bytes := t.Block()
	if elements == 0 {
		return 0, fmt.Errorf("%v is not supported; supported are %s", t, supported())
	}
	n := uint64(1)
	for _, d := range dims {
		if d == 0 {
			return 0, fmt.Errorf("dimensions %v: none may be 0", dims)
		}
		hi, lo := bits.Mul64(n, d)
		if hi != 0 {
			return 0, fmt.Errorf("dimensions %v have more than 2^64 elements", dims)
		}
		n = lo
	}
	if dims[0]%uint64(elements) != 0 {
		return 0, fmt.Errorf("rows of %d elements; %v has blocks of %d", dims[0], t, elements)
	}
	hi, lo := bits.Mul64(n/uint64(elements), uint64(bytes))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, fmt.Errorf("dimensions %v take more than 2^63 bytes", dims)
	}
	return lo, nil
}

// checkCover holds the tensors, whose Begin and End are from base on, to the
// format's rule: each begins where the one before it ends, rounded up to the
// alignment, and nothing else is in the file.
func checkCover(tensors []Tensor, base, size, align int64) error {
	sorted := slices.Clone(tensors)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].Begin < sorted[j].Begin })
	at := base
	for _, t := range sorted {
		switch {
		case t.Begin < at:
			return fmt.Errorf("tensor %q: its offset %d lies inside the tensor before it, which ends at %d", t.Name, t.Begin-base, at-base)
		case t.Begin > at:
			return fmt.Errorf("tensor %q: its offset %d leaves a hole from %d", t.Name, t.Begin-base, at-base)
		case t.End > size:
			return fmt.Errorf("tensor %q: it ends at byte %d of a file of %d; the file is cut short", t.Name, t.End, size)
		}
		if at = pad(t.End, align); at < 0 {
			return fmt.Errorf("tensor %q: its end %d cannot be rounded up to %d", t.Name, t.End, align)
		}
	}
	if size > at {
		return fmt.Errorf("%d bytes behind the last tensor belong to none", size-at)
	}
	return nil
}

// pad rounds n up to a multiple of align, a power of two; negative where that
// overflows.
func pad(n, align int64) int64 { return (n + align - 1) &^ (align - 1) }

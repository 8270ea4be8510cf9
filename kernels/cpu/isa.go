package cpu

import "unsafe"

// A tile call multiplies rows of packed activations by neighbouring tiles of a
// matrix. The assembly reads the fields by their offsets.
type tile struct {
	w         unsafe.Pointer // first tile
	wStride   uintptr        // bytes from tile to tile
	a         unsafe.Pointer // first row of activations
	aStride   uintptr        // bytes from row to row
	blocks    uintptr        // of 32 columns, or of 128
	out       unsafe.Pointer // first row of results
	outStride uintptr        // bytes from row to row
	aux       unsafe.Pointer // scales of the activations: a float32 a group
	auxStride uintptr        // bytes from row to row
	sums      unsafe.Pointer // Σ of the activations: an int32 a group, strided as aux
	scales    unsafe.Pointer // fp16 scales of the first tile: 16 a group
	scaleTile uintptr        // bytes from tile to tile
	zeros     unsafe.Pointer // zero points of the first tile: 16 a group
	zeroTile  uintptr        // bytes from tile to tile
	part      unsafe.Pointer // AMX: 8 KiB for the sums of a group and its weights as bytes
	next      uintptr        // weights that will be wanted soon; 0: none are known
	nextStep  uintptr        // bytes of them to ask for with every four columns, at most 128
	outNext   uintptr        // results that will be written next
}

// multiply is one shape of a kernel: rows by tiles.
type multiply struct {
	rows, tiles int
	run         func(*tile)
	first       func(*tile) // the same for the first rows that meet a tile: it asks for the next one's weights; nil: run
}

// isa is the kernels of one instruction set. All instruction sets give the same
// bits.
type isa struct {
	name  string
	small float64 // float32 operations of a tenth of a millisecond

	// Shapes of each kind of matrix, the largest first; the last is 1 by 1.
	matrix [kinds][]multiply
	// The same of attention's kernels.
	fused [fusedKinds][]fusedShape

	sumSquares func(x []float32) float32
	// normalise is y = x · scale · w; len(w) ≥ len(y).
	normalise func(y, x, w []float32, scale float32)
	sum       func(x []float32) float32
	// deviations is Σ (x - mean) and Σ (x - mean)².
	deviations func(x []float32, mean float32) (sum, square float32)
	// centre is y = ((x - mean) - rest) · scale · w + b; w and b are no shorter than y.
	centre   func(y, x, w, b []float32, mean, rest, scale float32)
	add      func(y, x []float32) // y += x
	operands func(y, x []float32) // y = bf16 operands of x
	// halves packs operands as bf16 after the row, for kernels that read them
	// so; nil if the instruction set has none. x has a multiple of 32 columns.
	halves func(y []uint16, x []float32)
	// pairsBF16 packs rows of bf16; see pairsOfBF16.
	pairsBF16 func(y, x []byte, in, rows, first int)
	// pairsFP8 makes a tile of bf16 of one of e4m3, its numbers a 256th of theirs,
	// for instruction sets whose bf16 kernels are worth it; nil if they are not.
	pairsFP8 func(y, x []byte)
	quantise func(q []int8, x []float32) (scale float32, sum int32)
	codes    func(q []int8, x []float32) (scale float32)               // of a weight row: num.Int8Row
	lanesOf  func(y [][16]uint32, x []uint32, stride int, flip uint32) // see lanesOf
	greatest func(x []float32) float32
	// exponents is y = exp(scale · x - most), and returns the sum.
	exponents func(y, x []float32, scale, most float32) float32
	siluMul   func(y, gate, up []float32)
	gelu      func(y, x []float32)        // by the error function
	geluMul   func(y, gate, up []float32) // by tanh
	widenFP8  func(y []float32, x []byte) // e4m3
	widenInt8 func(y []float32, x []byte)
	widenBF16 func(y []float32, x []byte)
	// slide is y[k] += x[t·stride + k] · w[t·len(y) + k] for ascending t.
	slide func(y, x, w []float32, taps, stride int)
}

// Kinds of matrix kernels.
const (
	kindF32 = iota
	kindBF16
	kindF16
	kindFP8
	kindMXFP4
	kindInt8
	kindInt4
	kindInt4Zero // with zero points
	kindInt4Fine // with scales and zero points for each 32 columns
	kindQ4       // with scales alone for each 32
	kinds
)

// blockBytes is the size of one block of a tile, by kind.
var blockBytes = [kinds]int{kindF32: 32 * 64, kindBF16: 16 * 64, kindF16: 32 * 32, kindFP8: 32 * 16, kindMXFP4: 4 * 64,
	kindInt8: 32 * 64, kindInt4: 16 * 64, kindInt4Zero: 16 * 64, kindInt4Fine: 16 * 64, kindQ4: 16 * 64}

// integer reports whether a kind has integer activations, in groups of 128.
func integer(kind int) bool { return kind >= kindInt8 }

// blockColumns is the number of columns of a block.
func blockColumns(kind int) int {
	if integer(kind) {
		return 128
	}
	return 32
}

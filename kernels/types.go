package kernels

// DType is how a number is stored.
type DType uint8

// The stored types of model files and of KV pages.
const (
	F32 DType = iota
	F16
	BF16
	F8E4M3
	F8E5M2
	Int8
	UInt8
	Int32
	Int64

	// Blocks of GGUF: a few numbers and their scales, see num.Blocks.
	Q4_0
	Q4_1
	Q5_0
	Q5_1
	Q8_0
	Q2_K
	Q3_K
	Q4_K
	Q5_K
	Q6_K
	IQ4_NL
	IQ4_XS
)

// dtypes has each type's name, and how many elements are stored together in how many
// bytes.
var dtypes = [...]struct {
	name            string
	elements, bytes int
}{
	F32: {"float32", 1, 4}, F16: {"float16", 1, 2}, BF16: {"bfloat16", 1, 2}, F8E4M3: {"fp8_e4m3", 1, 1}, F8E5M2: {"fp8_e5m2", 1, 1},
	Int8: {"int8", 1, 1}, UInt8: {"uint8", 1, 1}, Int32: {"int32", 1, 4}, Int64: {"int64", 1, 8},
	Q4_0: {"q4_0", 32, 18}, Q4_1: {"q4_1", 32, 20}, Q5_0: {"q5_0", 32, 22}, Q5_1: {"q5_1", 32, 24}, Q8_0: {"q8_0", 32, 34},
	Q2_K: {"q2_k", 256, 84}, Q3_K: {"q3_k", 256, 110}, Q4_K: {"q4_k", 256, 144}, Q5_K: {"q5_k", 256, 176}, Q6_K: {"q6_k", 256, 210},
	IQ4_NL: {"iq4_nl", 32, 18}, IQ4_XS: {"iq4_xs", 256, 136},
}

// Size is the number of bytes of one element; 0 for a type of blocks.
func (t DType) Size() int {
	if t.Blocks() {
		return 0
	}
	return dtypes[t].bytes
}

// Blocks reports whether elements of the type are stored in blocks.
func (t DType) Blocks() bool { return dtypes[t].elements > 1 }

// Block is how many elements are stored together, in how many bytes.
func (t DType) Block() (elements, bytes int) { return dtypes[t].elements, dtypes[t].bytes }

func (t DType) String() string { return dtypes[t].name }

// Format is how a backend keeps a weight, and with it how its linear rounds.
type Format uint8

// The formats. Which of them a backend has is said by its error.
const (
	FormatF32    Format = iota // activations float32
	FormatBF16                 // activations bf16, sums float32
	FormatF16                  // activations and sums float32 over fp16 values
	FormatInt8                 // one scale a row; activations int8, one scale a row and 128 columns
	FormatInt4                 // sym_int4: groups of 128, fp16 scales; activations int8 as above. Q4_0 stays as it is, in groups of 32
	FormatFP8                  // e4m3, one scale a row; activations bf16
	FormatMXFP4                // e2m1 in groups of 32 with e8m0 scales; activations bf16
	FormatGPTQ                 // 4 bits, group scales and zero points, act-order by Source.Order
	FormatAWQ                  // 4 bits, group scales and zero points
	FormatVector               // a bias, a norm's weight: float32
)

var formatNames = [...]string{"float32", "bfloat16", "float16", "int8", "sym_int4", "fp8", "mxfp4", "gptq", "awq", "vector"}

func (f Format) String() string { return formatNames[f] }

// Source is a weight as it lies in a model file.
type Source struct {
	Name string // as in the file, for errors
	Out  int    // rows; for a vector its length
	In   int    // columns; 1 for a vector
	Type DType
	Data []byte // row-major (Out, In), little-endian

	// Of quantised checkpoints; nil otherwise. Their meaning is the format's.
	Scales     []byte
	ScalesType DType
	Zeros      []byte
	Order      []byte // act-order: the group of each column, int32
	Group      int    // columns a scale; 0: the whole row
	GroupRows  int    // rows a scale, of FP8 block scales; 0: one row
}

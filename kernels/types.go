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

	// Blocks of GGUF: a few numbers and what they are scaled by, see num.Blocks.
	Q4_0 // 32 numbers in 18 bytes
	Q8_0 // 32 in 34
	Q4_K // 256 in 144
	Q6_K // 256 in 210
)

var dtypeSizes = [...]int{F32: 4, F16: 2, BF16: 2, F8E4M3: 1, F8E5M2: 1, Int8: 1, UInt8: 1, Int32: 4, Int64: 8, Q6_K: 0}
var dtypeNames = [...]string{F32: "float32", F16: "float16", BF16: "bfloat16", F8E4M3: "fp8_e4m3", F8E5M2: "fp8_e5m2", Int8: "int8", UInt8: "uint8", Int32: "int32", Int64: "int64", Q4_0: "q4_0", Q8_0: "q8_0", Q4_K: "q4_k", Q6_K: "q6_k"}

// Size is the number of bytes of one element; 0 for a type of blocks.
func (t DType) Size() int { return dtypeSizes[t] }

// Block is how many elements are stored together, in how many bytes.
func (t DType) Block() (elements, bytes int) {
	switch t {
	case Q4_0:
		return 32, 18
	case Q8_0:
		return 32, 34
	case Q4_K:
		return 256, 144
	case Q6_K:
		return 256, 210
	}
	return 1, dtypeSizes[t]
}

func (t DType) String() string { return dtypeNames[t] }

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

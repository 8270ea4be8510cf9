// Package cpu is the backend for host processors: several threads, and the
// widest instructions that the machine has.
//
// # Levels
//
// The kernels stand in five levels: "go" (portable), "avx2" (with FMA and
// F16C), "avx512" (with VNNI), "avx512_bf16", which is avx512 with VDPBF16PS for
// bf16 linears of 2 rows and more, and "amx", which is avx512 with the matrix
// unit for bf16, int8 and int4 linears of 8 rows and more. On the last two fp8
// of 8 rows and more is turned into bf16 on the way. All give the same
// bits, so the level is a matter of speed alone. The build tag purego leaves the assembly
// out. The tiles of AMX are configured and released within one assembly call.
// Machines without it test its kernels under package amxrun.
//
// # Layout of a matrix
//
// A matrix (out, in) is cut into tiles of 16 outputs. A tile is a row of 16
// lanes for each dword along in: one float32, two bf16, four int8. In a row of
// 16 dwords lane j belongs to output 16·tile + j. Rows are padded with zeros to
// blocks of 32 columns, those of integers to groups of 128.
//
//	float32  rows of one column, 64 bytes
//	float16  rows of one column, 32 bytes
//	fp8      rows of one column, 16 bytes; a scale for each output apart
//	bfloat16 rows of two columns, the even one in the low half
//	int8     rows of four columns, stored plus 128; a scale for each output apart
//	int4     a group of 128 columns is 16 rows; byte b of row r has column
//	         4r+b in its low nibble and 64+4r+b in its high one. Scales (fp16)
//	         and zero points of the group stand apart, in tile order. Where
//	         there is a scale for each 32 columns (or 64, which are two of the
//	         same) a group has four rows of scales and of zero points: rows 0
//	         to 7 hold columns 0-31 and 64-95, rows 8 to 15 the others
//	mxfp4    rows of eight columns, from the low nibble on; the powers of two
//	         of a block of 32 columns stand apart, a byte an output
//
// This is what AMX tile loads want, too.
//
// # Order of sums
//
// Floats: over each block of 32 columns the even and the odd columns are
// summed apart, each in ascending order from zero; the two are added, and the
// block is added to the total. Products are rounded before they are added; of
// bf16 operands they are exact, so that fused and unfused are the same.
// Integers: each group of 128 is summed exactly, scaled and added in float32,
// unfused, ascending. With scales for each 32 columns so is each of the four
// parts of a group, in the order 0, 2, 1, 3 in which they lie. Reductions over a row run in 16 lanes, which are added
// as a tree: 8 apart, then 4, 2, 1.
//
// None of it depends on how many rows a step has or on how many threads there
// are, so a row gets the same bits in any company.
package cpu

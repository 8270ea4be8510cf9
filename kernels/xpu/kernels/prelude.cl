// What every kernel knows. The host puts the tuning table's figures before this
// text: LANES (columns of a weight tile, and of a sub-group), SPLIT (sub-groups
// that share the columns of one dot product) and ROWS (rows of a tile).
//
// Weights lie in tiles of 16 output columns. A tile is a sequence of rows of 16
// dwords, one for each output; a dword holds the next elements along K: one
// float, two halves, four bytes or eight nibbles.

// A product and a sum are two roundings unless fma says otherwise: integer linears
// are held to equal bits.
#pragma OPENCL FP_CONTRACT OFF

#define TILE 16

// Before a loop over registers: rolled, its array would lie in memory. PoCL 3.1
// computes wrong sums where a work-group's loop is unrolled.
#ifdef UNROLLED
#define UNROLL __attribute__((opencl_unroll_hint))
#else
#define UNROLL
#endif

#ifdef __OPENCL_C_VERSION__
#define NaN nan(0u)
#endif

// With -DCOUNT the kernels that decode count what they move, in bytes: an item what it
// loads for itself, item 0 what all of a group load together. Such a kernel has a counter
// behind its other arguments.
#ifdef COUNT
#define COUNTER , __global uint *counter
#define COUNTING , uint *bytes, const int who
#define COUNT_ON , bytes, who
#define COUNT_BEGIN(item) uint counted_ = 0; uint *bytes = &counted_; const int who = (item);
#define COUNT_END atomic_add(counter, counted_)
#define LOAD(p, i) (*bytes += sizeof((p)[0]), (p)[i])
#define LOAD_SAME(p, i) (*bytes += who == 0 ? sizeof((p)[0]) : 0, (p)[i])
#define STORE(p, i, v) (*bytes += sizeof((p)[0]), (p)[i] = (v))
#else
#define COUNTER
#define COUNTING
#define COUNT_ON
#define COUNT_BEGIN(item)
#define COUNT_END
#define LOAD(p, i) (p)[i]
#define LOAD_SAME(p, i) (p)[i]
#define STORE(p, i, v) (p)[i] = (v)
#endif

// Numbers of two bytes and one.

inline float from_bf16(uint b) { return as_float(b << 16); }

inline uint to_bf16(float x) {
	uint b = as_uint(x);
	if ((b & 0x7fffffffu) > 0x7f800000u)
		return (b >> 16) | 0x40u;
	return (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
}

// The operand of a bf16 linear: what is below 2^-50 counts as zero.
inline uint operand_bf16(float x) {
	uint b = to_bf16(x);
	return fabs(from_bf16(b)) < 0x1p-50f ? 0u : b;
}

inline float from_f16(uint h) {
	uint sign = (h & 0x8000u) << 16, e = (h >> 10) & 31u, m = h & 0x3ffu;
	if (e == 0u) {
		float x = (float)m * 0x1p-24f;
		return sign ? -x : x;
	}
	if (e == 31u)
		return as_float(sign | 0x7f800000u | (m << 13));
	return as_float(sign | ((e + 112u) << 23) | (m << 13));
}

inline uint to_f16(float x) {
	uint b = as_uint(x), sign = (b >> 16) & 0x8000u;
	b &= 0x7fffffffu;
	if (b > 0x7f800000u)
		return sign | 0x7e00u;
	if (b >= 0x477ff000u)
		return sign | 0x7c00u;
	if (b < 0x38800000u)
		return sign | (uint)rint(as_float(b) * 0x1p24f);
	b += 0xfffu + ((b >> 13) & 1u);
	return sign | ((b >> 13) - (112u << 10));
}

inline float from_e4m3(uint v) {
	uint e = (v >> 3) & 15u, m = v & 7u;
	float x;
	if (e == 15u && m == 7u)
		x = NaN;
	else if (e == 0u)
		x = (float)m * 0x1p-9f;
	else
		x = as_float(((e + 120u) << 23) | (m << 20));
	return (v & 0x80u) ? -x : x;
}

inline uint to_e4m3(float x) {
	uint sign = (as_uint(x) >> 24) & 0x80u;
	x = fabs(x);
	if (isnan(x))
		return 0x7fu;
	if (x >= 448.0f)
		return sign | 0x7eu;
	if (x < 0x1p-6f)
		return sign | (uint)rint(x * 512.0f);
	uint b = as_uint(x);
	b += 0x7ffffu + ((b >> 20) & 1u);
	return sign | ((b >> 20) - (120u << 3));
}

inline float from_e2m1(uint v) {
	uint e = (v >> 1) & 3u, m = v & 1u;
	float x = e == 0u ? 0.5f * (float)m : as_float(((e + 126u) << 23) | (m << 22));
	return (v & 8u) ? -x : x;
}

inline float from_e8m0(uint b) {
	if (b == 255u)
		return NaN;
	return as_float(b == 0u ? 0x00400000u : b << 23);
}

// The formats of weights, as in kernels.Format.
#define F32 0
#define BF16 1
#define F16 2
#define INT8 3
#define INT4 4
#define FP8 5
#define MXFP4 6
#define GPTQ 7
#define AWQ 8

// The types of pages, as in kernels.DType, and no pages.
#define PAGE_F32 0
#define PAGE_F16 1
#define PAGE_BF16 2
#define PAGE_F8E4M3 3
#define ROWS 4
#define PAGE_INT8 5

// A head's keys or values of one page of int8: codes, up to a multiple of four bytes, then
// a float scale for each token.
#define INT8_CODES(numbers) (((numbers) + 3) / 4 * 4)
#define INT8_HEAD(dim, tokens) ((long)INT8_CODES((dim) * (tokens)) + 4 * (tokens))

// The scalar functions, as in kernels.Activation.
enum { SILU, GELU, GELU_TANH, RELU, TANH, SIGMOID, SWIGLU_OAI, QUICK_GELU };

inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

inline float activation(int kind, float x) {
	switch (kind) {
	case SILU:
		return x * sigmoid(x);
	case GELU:
		return 0.5f * x * erfc(-x * 0.70710678118654752f); // 1 + erf would cancel far below zero
	case GELU_TANH:
		return x * sigmoid(1.5957691216057308f * (x + 0.044715f * x * x * x)); // 0.5 (1 + tanh u) = sigmoid(2u)
	case RELU:
		return fmax(x, 0.0f);
	case TANH:
		return tanh(x);
	case QUICK_GELU:
		return x * sigmoid(1.702f * x);
	default:
		return sigmoid(x);
	}
}

inline float gated(int kind, float gate, float up, float limit) {
	if (limit > 0.0f) {
		gate = fmin(gate, limit);
		up = clamp(up, -limit, limit);
	}
	if (kind == SWIGLU_OAI)
		return gate * sigmoid(1.702f * gate) * (up + 1.0f);
	return activation(kind, gate) * up;
}

// total adds up one number of each of 64 items, always in the same order.
inline float total(float x, __local float *parts) {
	const int i = get_local_id(0);
	parts[i] = x;
	barrier(CLK_LOCAL_MEM_FENCE);
	for (int reach = 32; reach > 0; reach /= 2) {
		if (i < reach)
			parts[i] += parts[i + reach];
		barrier(CLK_LOCAL_MEM_FENCE);
	}
	float sum = parts[0];
	barrier(CLK_LOCAL_MEM_FENCE);
	return sum;
}

// linear: out = x · Wᵀ · scale + bias + add, for one format and R rows a group.
//
// The host includes this text once for each FORMAT and R, under NAME. A group of
// 16 · SPLIT items computes one tile of 16 outputs for R rows: item (slice, lane)
// sums its slice of K for output lane, and the slices are added in order. So the
// order of sums depends on K alone, and a row gets the same bits in any batch.
//
// Operands: float formats read x as it is; bf16, fp8 and mxfp4 read it packed as
// bf16, two a dword; integer formats read int8, four a dword, with a scale and a
// sum for each group of 128.

#if FORMAT == F32
#define UNIT 1 // dword rows that a slice takes at a time
#define PER 1  // elements a dword
#elif FORMAT == F16
#define UNIT 1
#define PER 2
#elif FORMAT == BF16
#define UNIT 8 // as the matrix unit takes them
#define PER 2
#elif FORMAT == FP8
#define UNIT 32 // 128 columns, which share a scale
#define PER 4
#elif FORMAT == MXFP4
#define UNIT 4 // 32 columns, which share a scale
#define PER 8
#elif FORMAT == INT8
#define UNIT 32
#define PER 4
#else // INT4, GPTQ, AWQ
#define UNIT 16
#define PER 8
#endif

#if FORMAT == F32 || FORMAT == F16
#define X float
#else
#define X uint
#endif

#if FORMAT == INT8 || FORMAT == INT4 || FORMAT == GPTQ || FORMAT == AWQ
#define INTEGER 1
#else
#define INTEGER 0
#endif

#if INTEGER

// dot4 is Σ of four products of signed bytes.
inline int CAT(NAME, _dot4)(uint a, uint b) {
	char4 x = as_char4(a), y = as_char4(b);
	return (int)x.s0 * y.s0 + (int)x.s1 * y.s1 + (int)x.s2 * y.s2 + (int)x.s3 * y.s3;
}

// group_sum is the exact sum of one group of 128 columns.
inline int CAT(NAME, _group)(__global const uint *w, __global const uint *x COUNTING) {
	int sum = 0;
	for (int d = 0; d < UNIT; d++) {
		uint v = LOAD(w, d * TILE);
#if FORMAT == INT8
		sum += CAT(NAME, _dot4)(v, LOAD_SAME(x, d));
#else
		sum += CAT(NAME, _dot4)(v & 0x0f0f0f0fu, LOAD_SAME(x, d)) + CAT(NAME, _dot4)((v >> 4) & 0x0f0f0f0fu, LOAD_SAME(x, d + 16));
#endif
	}
	return sum;
}

#else

// unit_sum adds one unit of columns; k0 is its first, k the number there are.
inline float CAT(NAME, _unit)(__global const uint *w, __global const X *x, int unit, int k COUNTING) {
	float even = 0.0f, odd = 0.0f;
	for (int d = 0; d < UNIT; d++) {
		uint v = LOAD(w, d * TILE);
		int i = unit * UNIT + d;
#if FORMAT == F32
		even = fma(as_float(v), LOAD_SAME(x, i), even);
#elif FORMAT == F16
		even = fma(from_f16(v & 0xffffu), LOAD_SAME(x, 2 * i), even);
		if (2 * i + 1 < k)
			odd = fma(from_f16(v >> 16), LOAD_SAME(x, 2 * i + 1), odd);
#elif FORMAT == BF16
		uint a = LOAD_SAME(x, i);
		even = fma(from_bf16(v & 0xffffu), from_bf16(a & 0xffffu), even);
		odd = fma(as_float(v & 0xffff0000u), as_float(a & 0xffff0000u), odd);
#elif FORMAT == FP8
		uint a = LOAD_SAME(x, 2 * i), b = LOAD_SAME(x, 2 * i + 1);
		even = fma(from_e4m3(v & 255u), from_bf16(a & 0xffffu), even);
		odd = fma(from_e4m3((v >> 8) & 255u), as_float(a & 0xffff0000u), odd);
		even = fma(from_e4m3((v >> 16) & 255u), from_bf16(b & 0xffffu), even);
		odd = fma(from_e4m3(v >> 24), as_float(b & 0xffff0000u), odd);
#elif FORMAT == MXFP4
		for (int j = 0; j < 4; j++) {
			uint a = LOAD_SAME(x, 4 * i + j);
			even = fma(from_e2m1(v >> (8 * j)), from_bf16(a & 0xffffu), even);
			odd = fma(from_e2m1(v >> (8 * j + 4)), as_float(a & 0xffff0000u), odd);
		}
#endif
	}
	return even + odd;
}

#endif

// arena   dwords of all weights; base is where W begins. With which, row r takes
//         the weight that begins at bases[which[r]] (experts), and R is 1.
// x       (rows / share, stride) operands; xs, xsums (groups, rows / share)
// scales  dwords from base to W's scales; zeros to its zero points
// bias    where it begins in vectors, or -1; that of expert e is e · n further on
__kernel __attribute__((reqd_work_group_size(TILE * SPLIT, 1, 1)))
void NAME(__global const uint *arena, long base, __global const long *bases, __global const int *which,
	__global const X *x, int stride, __global const float *xs, __global const int *xsums, int share,
	int scales, int zeros, int group, __global const float *vectors, long bias,
	__global const float *add, int hasAdd, __global float *out, int outStride, int first,
	int n, int k, int rows, int height, float scale COUNTER)
{
	const int lane = get_local_id(0) % TILE, slice = get_local_id(0) / TILE;
	const int tile = get_group_id(0), row0 = get_group_id(1) * height; // height is R
	__local float parts[SPLIT * TILE * R];
	COUNT_BEGIN(lane)
	if (base < 0) {
		base = bases[which[row0]];
		if (base < 0)
			return; // this expert lies in another arena
		if (bias >= 0)
			bias += (long)which[row0] * n;
	}
	const int depth = (k + PER - 1) / PER;            // dword rows that hold columns
	const int units = (depth + UNIT - 1) / UNIT;
	__global const uint *w = arena + base + (long)tile * units * UNIT * TILE + lane;
	float sum[R];
	UNROLL
	for (int r = 0; r < R; r++)
		sum[r] = 0.0f;

#if INTEGER
	const int columns = group ? k / group : 1;        // scales of a row
	__global const float *ws = (__global const float *)(arena + base + scales) + (long)tile * columns * TILE + lane;
	__global const uint *wz = arena + base + zeros + (long)tile * columns * TILE + lane;
	for (int u0 = 0; u0 < units; u0 += SPLIT) {
		const int u = u0 + slice;
		UNROLL
		for (int r = 0; r < R; r++) {
			const int row = min(row0 + r, rows - 1) / share;
			float term = 0.0f;
			if (u < units) {
				int exact = CAT(NAME, _group)(w + (long)u * UNIT * TILE, x + (long)row * stride + u * 32 COUNT_ON);
				float s = LOAD_SAME(xs, u * (rows / share) + row);
#if FORMAT != INT8
				const int c = u * 128 / group;
				uint zero = zeros ? LOAD(wz, c * TILE) : 8u;
				exact -= (int)zero * LOAD_SAME(xsums, u * (rows / share) + row);
				s = s * LOAD(ws, c * TILE);
#endif
				term = (float)exact * s;
			}
			parts[(slice * R + r) * TILE + lane] = term;
		}
		barrier(CLK_LOCAL_MEM_FENCE);
		if (slice == 0)
			for (int s = 0; s < SPLIT && u0 + s < units; s++)
				UNROLL
				for (int r = 0; r < R; r++)
					sum[r] = sum[r] + parts[(s * R + r) * TILE + lane];
		barrier(CLK_LOCAL_MEM_FENCE);
	}
#if FORMAT == INT8
	UNROLL
	for (int r = 0; r < R; r++)
		sum[r] = sum[r] * LOAD(ws, 0);
#endif
#else
	const int each = (units + SPLIT - 1) / SPLIT;
	const int end = min((slice + 1) * each, units);
	for (int u = slice * each; u < end; u++) {
		float s = 1.0f;
#if FORMAT == FP8
		const int columns = group ? (k + group - 1) / group : 1;
		s = LOAD((__global const float *)(arena + base + scales), ((long)tile * columns + (group ? u * 128 / group : 0)) * TILE + lane);
#elif FORMAT == MXFP4
		s = from_e8m0(LOAD((__global const uchar *)(arena + base + scales), ((long)tile * units + u) * TILE + lane));
#endif
		UNROLL
		for (int r = 0; r < R; r++) {
			const int row = min(row0 + r, rows - 1) / share;
			float part = CAT(NAME, _unit)(w + (long)u * UNIT * TILE, x + (long)row * stride, u, k COUNT_ON);
			sum[r] = fma(part, s, sum[r]);
		}
	}
	UNROLL
	for (int r = 0; r < R; r++)
		parts[(slice * R + r) * TILE + lane] = sum[r];
	barrier(CLK_LOCAL_MEM_FENCE);
	if (slice == 0)
		UNROLL
		for (int r = 0; r < R; r++)
			for (int s = 1; s < SPLIT; s++)
				sum[r] += parts[(s * R + r) * TILE + lane];
#endif

	const int o = tile * TILE + lane;
	UNROLL
	for (int r = 0; r < R; r++) {
		if (slice != 0 || o >= n || row0 + r >= rows)
			continue;
		const long at = (long)(row0 + r) * outStride + first + o;
		float y = sum[r] * scale;
		if (bias >= 0)
			y += LOAD(vectors, bias + o);
		if (hasAdd)
			y += LOAD(add, at);
		STORE(out, at, y);
	}
	COUNT_END;
}

#undef UNIT
#undef PER
#undef X
#undef INTEGER
#undef FORMAT
#undef NAME
#undef R

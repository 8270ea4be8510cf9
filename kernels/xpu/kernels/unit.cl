// unit: how the matrix unit takes a weight of one FORMAT, for the kernels that follow
// it: matrix.cl for one row, tiles.cl for many. The host includes all three once for each
// format, under NAME.

#undef INTEGER
#undef ACC
#undef UNIT
#undef DEPTH
#undef LOADS
#undef USES
#undef DROWS
#undef NT

#if FORMAT == INT8 || FORMAT == INT4
#define INTEGER 1
#define ACC int8
#else
#define INTEGER 0
#define ACC float8
#endif

// A unit is what a slice takes at a time: LOADS times DROWS dword rows of weights, each
// enough for USES matrix operations.
#if FORMAT == BF16
#define UNIT 8   // dword rows
#define DEPTH 16 // columns
#define LOADS 1
#define USES 1
#elif FORMAT == FP8
#define UNIT 32
#define DEPTH 128
#define LOADS 8
#define USES 1
#elif FORMAT == MXFP4
#define UNIT 4
#define DEPTH 32
#define LOADS 2
#define USES 1
#elif FORMAT == INT8
#define UNIT 32
#define DEPTH 128
#define LOADS 4
#define USES 1
#else // INT4, GPTQ, AWQ
#define UNIT 16
#define DEPTH 128
#define LOADS 2
#define USES 2
#endif
#define DROWS (UNIT / LOADS)

#define NT (TILE / LANES) // sub-group widths of a tile

// column_block loads DROWS dword rows of a tile: dword row r of output t · LANES + lane is
// v[r · NT + t].
inline void CAT(NAME, _block)(__global const uint *w, uint *v COUNTING) {
#if DROWS * NT == 16
	block8(w, v);
	block8(w + 8 * LANES, v + 8);
#elif DROWS * NT == 8
	block8(w, v);
#elif DROWS * NT == 4
	block4(w, v);
#else
	block2(w, v);
#endif
}

// column makes what use p of loaded rows multiplies: eight dwords along K of output t.
inline int8 CAT(NAME, _column)(const uint *v, int t, int p) {
	uint b[8];
	UNROLL
	for (int j = 0; j < 8; j++) {
#if FORMAT == BF16 || FORMAT == INT8
		b[j] = v[j * NT + t];
#elif FORMAT == INT4
		b[j] = (v[j * NT + t] >> (p * 4)) & 0x0f0f0f0fu;
#elif FORMAT == FP8
		const uint x = v[j / 2 * NT + t] >> (j % 2 * 16);
		b[j] = (as_uint(from_e4m3(x & 255u)) >> 16) | (as_uint(from_e4m3((x >> 8) & 255u)) & 0xffff0000u);
#elif FORMAT == MXFP4
		const uint x = v[j / 4 * NT + t] >> (j % 4 * 8);
		b[j] = (as_uint(from_e2m1(x)) >> 16) | (as_uint(from_e2m1(x >> 4)) & 0xffff0000u);
#endif
	}
	return as_int8(vload8(0, b));
}

#undef DPAS_OF
#if INTEGER
#define DPAS_OF(a, b, acc, shared) dpas_i8(a, b, acc, shared)
#else
#define DPAS_OF(a, b, acc, shared) dpas_bf16(a, b, acc, shared)
#endif

// UNIT_SCALE declares the scale of this lane's output in unit u, and its zero point. Where
// four scales are in a dword, the sixteen of a unit are four dwords.
#undef UNIT_SCALE
#undef ADD_SCALED
#if FORMAT == INT4
#define UNIT_SCALE(s, zero, t) \
	const int at_ = u * 128 / group * TILE + (t) * LANES; \
	const int zero = zeros ? (int)block1(wz + at_) : 8; \
	const float s = as_float(block1(ws + at_));
#elif FORMAT == FP8
#define UNIT_SCALE(s, zero, t) \
	const float s = as_float(block1(ws + (group ? u * 128 / group : 0) * TILE + (t) * LANES));
#elif FORMAT == MXFP4
#define UNIT_SCALE(s, zero, t) \
	const int j_ = (t) * LANES + lane; \
	__global const uint *four = arena + base + scales + ((long)tile * units + u) * (TILE / 4); \
	const uint f0 = LOAD_SAME(four, 0), f1 = LOAD_SAME(four, 1), f2 = LOAD_SAME(four, 2), f3 = LOAD_SAME(four, 3); \
	const uint f_ = j_ < 8 ? (j_ < 4 ? f0 : f1) : (j_ < 12 ? f2 : f3); \
	const float s = from_e8m0((f_ >> (j_ % 4 * 8)) & 255u);
#else
#define UNIT_SCALE(s, zero, t)
#endif
#if FORMAT == BF16
#define ADD_SCALED(y, s, sum) ((sum) + (y))
#else
#define ADD_SCALED(y, s, sum) fma(y, s, sum)
#endif

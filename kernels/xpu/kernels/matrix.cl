// matrix: the linear of linear.cl by the matrix unit, with the same arguments. The
// host includes this text once for each FORMAT and number of row tiles MT, under NAME.
//
// A group is SPLIT sub-groups that share K of one tile of 16 outputs for 8 · MT rows;
// their slices are added in order. With ONE a group computes a single row, which may be
// that of an expert: the other seven rows of the unit are zero, since reading the weights
// is what takes the time. The order of sums is the same for one row and for many. The loop
// over K reads memory by blocks alone, and each dword of weights once.

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

// rows loads this lane's slices of 8 rows of the operands, or of one.
inline A CAT(NAME, _rows)(__global const uint *x, const long *at, long d COUNTING) {
	SLICE a[8];
#if ONE
	UNROLL
	for (int i = 1; i < 8; i++)
		a[i] = 0;
	a[0] = block_slice(x + at[0] + d);
#else
	UNROLL
	for (int i = 0; i < 8; i++)
		a[i] = block_slice(x + at[i] + d);
#endif
	return vload8(0, a);
}

#if ONE
#define WIDE 1 // rows that a group writes
#else
#define WIDE (8 * MT)
#endif

__kernel SUBGROUP __attribute__((reqd_work_group_size(LANES * SPLIT, 1, 1)))
void NAME(__global const uint *arena, long base, __global const long *bases, __global const int *which,
	__global const uint *x, int stride, __global const float *xs, __global const int *xsums, int share,
	int scales, int zeros, int group, __global const float *vectors, long bias,
	__global const float *add, int hasAdd, __global float *out, int outStride, int first,
	int n, int k, int rows, int height, float scale COUNTER)
{
	const int lane = get_local_id(0) % LANES, slice = SLICE_ID;
	const int tile = get_group_id(0), row0 = get_group_id(1) * WIDE; // height is WIDE
	__local float parts[SPLIT * LANES * NT * MT * 8];
	SHARED(exchange)
	COUNT_BEGIN(lane)
	if (base < 0) {
		base = bases[which[row0]];
		if (base < 0)
			return; // this expert lies in another arena
		if (bias >= 0)
			bias += (long)which[row0] * n;
	}
	const int units = (k + DEPTH - 1) / DEPTH;
	__global const uint *w = arena + base + (long)tile * units * UNIT * TILE;
	int row[WIDE];   // of the operands
	long at[WIDE];   // where it begins
	float sum[MT][NT][8];
	UNROLL
	for (int i = 0; i < WIDE; i++) {
		row[i] = min(row0 + i, rows - 1);
#if ONE
		row[i] = row[i] / share;
#endif
		at[i] = (long)row[i] * stride;
	}
	UNROLL
	for (int m = 0; m < MT; m++)
		UNROLL
		for (int t = 0; t < NT; t++)
			UNROLL
			for (int i = 0; i < 8; i++)
				sum[m][t][i] = 0.0f;

#if INTEGER
	const int columns = group ? k / group : 1; // scales of a row
#elif FORMAT == FP8
	const int columns = group ? (k + group - 1) / group : 1;
#endif
#if INTEGER || FORMAT == FP8
	__global const uint *ws = arena + base + scales + (long)tile * columns * TILE;
#endif
#if INTEGER
	__global const uint *wz = arena + base + zeros + (long)tile * columns * TILE;
	const int each = 1, rounds = (units + SPLIT - 1) / SPLIT; // a unit of each slice, then all are added
#else
	const int each = (units + SPLIT - 1) / SPLIT, rounds = each;
#endif

	for (int round = 0; round < rounds; round++) {
		// Slices past the end work on the last unit and add nothing: all must meet at
		// the exchange.
		const int mine = INTEGER ? round * SPLIT + slice : slice * each + round;
		const int u = min(mine, units - 1);
		ACC acc[MT][NT];
		UNROLL
		for (int m = 0; m < MT; m++)
			UNROLL
			for (int t = 0; t < NT; t++)
				acc[m][t] = (ACC)(0);
		for (int s = 0; s < LOADS; s++) {
			uint v[DROWS * NT];
			CAT(NAME, _block)(w + ((long)u * UNIT + s * DROWS) * TILE, v COUNT_ON);
			UNROLL
			for (int p = 0; p < USES; p++)
				UNROLL
				for (int m = 0; m < MT; m++) {
					const A a = CAT(NAME, _rows)(x, at + m * 8, ((long)u * LOADS * USES + p * LOADS + s) * 8 COUNT_ON);
					UNROLL
					for (int t = 0; t < NT; t++) {
						const int8 b = CAT(NAME, _column)(v, t, p);
#if INTEGER
						acc[m][t] = dpas_i8(a, b, acc[m][t], SHARED_OF(exchange, slice));
#else
						acc[m][t] = dpas_bf16(a, b, acc[m][t], SHARED_OF(exchange, slice));
#endif
					}
				}
		}
		UNROLL
		for (int t = 0; t < NT; t++) {
#if FORMAT == INT4
			const int c = u * 128 / group * TILE + t * LANES;
			const int zero = zeros ? (int)block1(wz + c) : 8;
			const float s = as_float(block1(ws + c));
#elif FORMAT == FP8
			const float s = as_float(block1(ws + (group ? u * 128 / group : 0) * TILE + t * LANES));
#elif FORMAT == MXFP4
			// Four scales a dword; the sixteen of a unit are four dwords.
			const int j = t * LANES + lane;
			__global const uint *four = arena + base + scales + ((long)tile * units + u) * (TILE / 4);
			const uint f0 = LOAD_SAME(four, 0), f1 = LOAD_SAME(four, 1), f2 = LOAD_SAME(four, 2), f3 = LOAD_SAME(four, 3);
			const uint f = j < 8 ? (j < 4 ? f0 : f1) : (j < 12 ? f2 : f3);
			const float s = from_e8m0((f >> (j % 4 * 8)) & 255u);
#endif
			UNROLL
			for (int m = 0; m < MT; m++) {
#if INTEGER
				int exact[8];
				vstore8(acc[m][t], 0, exact);
				UNROLL
				for (int i = 0; i < min(8, WIDE); i++) {
					const int r = row[m * 8 + i] * units + u;
					float f = LOAD_SAME(xs, r);
#if FORMAT != INT8
					exact[i] -= zero * LOAD_SAME(xsums, r);
					f = f * s;
#endif
					parts[((slice * MT + m) * NT + t) * LANES * 8 + i * LANES + lane] = mine < units ? (float)exact[i] * f : 0.0f;
				}
#else
				float y[8];
				vstore8(acc[m][t], 0, y);
				if (mine < units && round < each)
					UNROLL
					for (int i = 0; i < min(8, WIDE); i++)
#if FORMAT == BF16
						sum[m][t][i] = sum[m][t][i] + y[i];
#else
						sum[m][t][i] = fma(y[i], s, sum[m][t][i]);
#endif
#endif
			}
		}
#if INTEGER
		barrier(CLK_LOCAL_MEM_FENCE);
		if (slice == 0)
			for (int s = 0; s < SPLIT && round * SPLIT + s < units; s++)
				UNROLL
				for (int m = 0; m < MT; m++)
					UNROLL
					for (int t = 0; t < NT; t++)
						UNROLL
						for (int i = 0; i < min(8, WIDE); i++)
							sum[m][t][i] = sum[m][t][i] + parts[((s * MT + m) * NT + t) * LANES * 8 + i * LANES + lane];
		barrier(CLK_LOCAL_MEM_FENCE);
#endif
	}

#if !INTEGER
	UNROLL
	for (int m = 0; m < MT; m++)
		UNROLL
		for (int t = 0; t < NT; t++)
			UNROLL
			for (int i = 0; i < min(8, WIDE); i++)
				parts[((slice * MT + m) * NT + t) * LANES * 8 + i * LANES + lane] = sum[m][t][i];
	barrier(CLK_LOCAL_MEM_FENCE);
#endif
	UNROLL
	for (int m = 0; m < MT; m++)
		UNROLL
		for (int t = 0; t < NT; t++)
			UNROLL
			for (int i = 0; i < min(8, WIDE); i++) {
				const int r = row0 + m * 8 + i, o = tile * TILE + t * LANES + lane;
				if (slice != 0 || r >= rows || o >= n)
					continue;
				float y = sum[m][t][i];
#if INTEGER
#if FORMAT == INT8
				y = y * as_float(LOAD(ws, t * LANES + lane));
#endif
#else
				for (int s = 1; s < SPLIT; s++)
					y += parts[((s * MT + m) * NT + t) * LANES * 8 + i * LANES + lane];
#endif
				y *= scale;
				if (bias >= 0)
					y += LOAD(vectors, bias + o);
				const long to = (long)r * outStride + first + o;
				if (hasAdd)
					y += LOAD(add, to);
				STORE(out, to, y);
			}
	COUNT_END;
}

#undef INTEGER
#undef ACC
#undef UNIT
#undef DEPTH
#undef LOADS
#undef USES
#undef DROWS
#undef NT
#undef WIDE
#undef FORMAT
#undef NAME
#undef MT
#undef ONE

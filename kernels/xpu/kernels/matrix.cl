// matrix: the linear of linear.cl by the matrix unit, with the same arguments. The
// host includes this text once for each FORMAT and number of row tiles MT, under NAME.
//
// A group is SPLIT sub-groups that share K of one tile of 16 outputs for 8 · MT rows;
// their slices are added in order. height is how many of these rows a group writes: all,
// or one where each row goes to another expert. A single row uses the same kernel with the other
// seven rows idle: reading the weights is what takes the time, and the order of sums is
// the same for one row and for many.

#if FORMAT == INT8 || FORMAT == INT4
#define INTEGER 1
#define ACC int8
#else
#define INTEGER 0
#define ACC float8
#endif

// A unit is what a slice takes at a time; STEPS matrix operations long.
#if FORMAT == BF16
#define UNIT 8   // dword rows
#define DEPTH 16 // columns
#define STEPS 1
#elif FORMAT == FP8
#define UNIT 32
#define DEPTH 128
#define STEPS 8
#elif FORMAT == MXFP4
#define UNIT 4
#define DEPTH 32
#define STEPS 2
#elif FORMAT == INT8
#define UNIT 32
#define DEPTH 128
#define STEPS 4
#else // INT4, GPTQ, AWQ
#define UNIT 16
#define DEPTH 128
#define STEPS 4
#endif

#define NT (TILE / LANES) // sub-group widths of a tile

// column loads what step s of a unit multiplies: eight dwords along K of one output.
inline int8 CAT(NAME, _column)(__global const uint *w, int s) {
	uint b[8];
	UNROLL
	for (int j = 0; j < 8; j++) {
#if FORMAT == BF16
		b[j] = w[j * TILE];
#elif FORMAT == INT8
		b[j] = w[(s * 8 + j) * TILE];
#elif FORMAT == INT4
		b[j] = (w[(s % 2 * 8 + j) * TILE] >> (s / 2 * 4)) & 0x0f0f0f0fu;
#elif FORMAT == FP8
		uint v = w[(s * 4 + j / 2) * TILE] >> (j % 2 * 16);
		b[j] = (as_uint(from_e4m3(v & 255u)) >> 16) | (as_uint(from_e4m3((v >> 8) & 255u)) & 0xffff0000u);
#elif FORMAT == MXFP4
		uint v = w[(s * 2 + j / 4) * TILE] >> (j % 4 * 8);
		b[j] = (as_uint(from_e2m1(v)) >> 16) | (as_uint(from_e2m1(v >> 4)) & 0xffff0000u);
#endif
	}
	return as_int8(vload8(0, b));
}

// rows loads this lane's slices of 8 rows at dword d of the operands.
inline A CAT(NAME, _rows)(__global const uint *x, int stride, int row0, int rows, int share, int d, int lane) {
	SLICE a[8];
	UNROLL
	for (int i = 0; i < 8; i++) {
		const long row = min(row0 + i, rows - 1) / share;
		a[i] = ((__global const SLICE *)(x + row * stride + d))[lane];
	}
	return vload8(0, a);
}

__kernel SUBGROUP __attribute__((reqd_work_group_size(LANES * SPLIT, 1, 1)))
void NAME(__global const uint *arena, long base, __global const long *bases, __global const int *which,
	__global const uint *x, int stride, __global const float *xs, __global const int *xsums, int share,
	int scales, int zeros, int group, __global const float *vectors, long bias,
	__global const float *add, int hasAdd, __global float *out, int outStride, int first,
	int n, int k, int rows, int height, float scale)
{
	const int lane = get_local_id(0) % LANES, slice = get_local_id(0) / LANES;
	const int tile = get_group_id(0), row0 = get_group_id(1) * height;
	__local float parts[SPLIT * LANES * NT * MT * 8];
	SHARED(exchange)
	if (base < 0) {
		base = bases[which[row0]];
		if (base < 0)
			return; // this expert lies in another arena
		if (bias >= 0)
			bias += (long)which[row0] * n;
	}
	const int units = (k + DEPTH - 1) / DEPTH;
	__global const uint *w = arena + base + (long)tile * units * UNIT * TILE + lane;
	float sum[MT][NT][8];
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
	__global const float *ws = (__global const float *)(arena + base + scales) + (long)tile * columns * TILE + lane;
#endif
#if INTEGER
	__global const uint *wz = arena + base + zeros + (long)tile * columns * TILE + lane;
	const int each = 1, rounds = (units + SPLIT - 1) / SPLIT; // a unit of each slice, then all are added
#else
	const int each = (units + SPLIT - 1) / SPLIT, rounds = each;
#endif

	for (int round = 0; round < rounds; round++) {
		// Slices past the end work on the last unit and add nothing: all must meet at
		// the exchange.
		const int mine = INTEGER ? round * SPLIT + slice : slice * each + round;
		const int u = min(mine, units - 1);
		UNROLL
		for (int t = 0; t < NT; t++) {
			ACC acc[MT];
			UNROLL
			for (int m = 0; m < MT; m++)
				acc[m] = (ACC)(0);
			for (int s = 0; s < STEPS; s++) {
				const int8 b = CAT(NAME, _column)(w + (long)u * UNIT * TILE + t * LANES, s);
				UNROLL
				for (int m = 0; m < MT; m++) {
					const A a = CAT(NAME, _rows)(x, stride, row0 + m * 8, rows, share, (u * STEPS + s) * 8, lane);
#if INTEGER
					acc[m] = dpas_i8(a, b, acc[m], SHARED_OF(exchange, slice));
#else
					acc[m] = dpas_bf16(a, b, acc[m], SHARED_OF(exchange, slice));
#endif
				}
			}
			UNROLL
			for (int m = 0; m < MT; m++) {
#if INTEGER
				int exact[8];
				vstore8(acc[m], 0, exact);
				UNROLL
				for (int i = 0; i < 8; i++) {
					const int row = min(row0 + m * 8 + i, rows - 1) / share;
					float s = xs[row * units + u];
#if FORMAT != INT8
					const int c = u * 128 / group;
					const uint zero = zeros ? wz[c * TILE + t * LANES] : 8u;
					exact[i] -= (int)zero * xsums[row * units + u];
					s = s * ws[c * TILE + t * LANES];
#endif
					parts[((slice * MT + m) * NT + t) * LANES * 8 + i * LANES + lane] = mine < units ? (float)exact[i] * s : 0.0f;
				}
#else
				float y[8], s = 1.0f;
				vstore8(acc[m], 0, y);
#if FORMAT == FP8
				s = ws[(group ? u * 128 / group : 0) * TILE + t * LANES];
#elif FORMAT == MXFP4
				s = from_e8m0(((__global const uchar *)(arena + base + scales))[((long)tile * units + u) * TILE + t * LANES + lane]);
#endif
				if (mine < units && round < each)
					UNROLL
					for (int i = 0; i < 8; i++)
						sum[m][t][i] = fma(y[i], s, sum[m][t][i]);
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
						for (int i = 0; i < 8; i++)
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
			for (int i = 0; i < 8; i++)
				parts[((slice * MT + m) * NT + t) * LANES * 8 + i * LANES + lane] = sum[m][t][i];
	barrier(CLK_LOCAL_MEM_FENCE);
#endif
	if (slice != 0)
		return;
	UNROLL
	for (int m = 0; m < MT; m++)
		UNROLL
		for (int t = 0; t < NT; t++)
			UNROLL
			for (int i = 0; i < 8; i++) {
				const int row = row0 + m * 8 + i, o = tile * TILE + t * LANES + lane;
				if (row >= min(rows, row0 + height) || o >= n)
					continue;
				float y = sum[m][t][i];
#if INTEGER
#if FORMAT == INT8
				y = y * ws[t * LANES];
#endif
#else
				for (int s = 1; s < SPLIT; s++)
					y += parts[((s * MT + m) * NT + t) * LANES * 8 + i * LANES + lane];
#endif
				y *= scale;
				if (bias >= 0)
					y += vectors[bias + o];
				const long at = (long)row * outStride + first + o;
				if (hasAdd)
					y += add[at];
				out[at] = y;
			}
}

#undef INTEGER
#undef ACC
#undef UNIT
#undef DEPTH
#undef STEPS
#undef NT
#undef FORMAT
#undef NAME
#undef MT

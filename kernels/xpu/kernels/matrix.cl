// matrix: the linear of linear.cl by the matrix unit for a single row a group, with the
// same arguments; unit.cl stands before it. The row may be that of an expert.
//
// A group is SPLIT sub-groups that share K of one tile of 16 outputs; their slices are
// added in order. The unit's other seven rows are zero, since reading the weights is what
// takes the time. The loop over K reads memory by blocks alone, and each dword of weights
// once.

__kernel SUBGROUP __attribute__((reqd_work_group_size(LANES * SPLIT, 1, 1)))
void NAME(__global const uint *arena, long base, __global const long *bases, __global const int *which,
	__global const uint *x, int stride, __global const float *xs, __global const int *xsums, int share,
	int scales, int zeros, int group, __global const float *vectors, long bias,
	__global const float *add, int hasAdd, __global float *out, int outStride, int first,
	int n, int k, int rows, int height, float scale COUNTER)
{
	const int lane = get_local_id(0) % LANES, slice = SLICE_ID;
	const int tile = get_group_id(0), row = get_group_id(1);
	__local float parts[SPLIT * TILE];
	SHARED(exchange)
	COUNT_BEGIN(lane)
	if (base < 0) {
		base = bases[which[row]];
		if (base < 0)
			return; // this expert lies in another arena
		if (bias >= 0)
			bias += (long)which[row] * n;
	}
	const int units = (k + DEPTH - 1) / DEPTH;
	__global const uint *w = arena + base + (long)tile * units * UNIT * TILE;
	const int from = row / share, there = rows / share; // its operands, and how many there are
	__global const uint *xr = x + (long)from * stride;
	float sum[NT];
	UNROLL
	for (int t = 0; t < NT; t++)
		sum[t] = 0.0f;

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
		ACC acc[NT];
		UNROLL
		for (int t = 0; t < NT; t++)
			acc[t] = (ACC)(0);
		for (int s = 0; s < LOADS; s++) {
			uint v[DROWS * NT];
			CAT(NAME, _block)(w + ((long)u * UNIT + s * DROWS) * TILE, v COUNT_ON);
			UNROLL
			for (int p = 0; p < USES; p++) {
				SLICE a[8];
				UNROLL
				for (int i = 1; i < 8; i++)
					a[i] = 0;
				a[0] = block_slice(xr + ((long)u * LOADS * USES + p * LOADS + s) * 8);
				const A rows8 = vload8(0, a);
				UNROLL
				for (int t = 0; t < NT; t++)
					acc[t] = DPAS_OF(rows8, CAT(NAME, _column)(v, t, p), acc[t], SHARED_OF(exchange, slice));
			}
		}
		UNROLL
		for (int t = 0; t < NT; t++) {
			UNIT_SCALE(s, zero, t)
#if INTEGER
			const int r = u * there + from;
			int exact = acc[t].s0;
			float f = LOAD_SAME(xs, r);
#if FORMAT != INT8
			exact -= zero * LOAD_SAME(xsums, r);
			f = f * s;
#endif
			parts[(slice * NT + t) * LANES + lane] = mine < units ? (float)exact * f : 0.0f;
#else
			if (mine < units && round < each)
				sum[t] = ADD_SCALED(acc[t].s0, s, sum[t]);
#endif
		}
#if INTEGER
		barrier(CLK_LOCAL_MEM_FENCE);
		if (slice == 0)
			for (int s = 0; s < SPLIT && round * SPLIT + s < units; s++)
				UNROLL
				for (int t = 0; t < NT; t++)
					sum[t] = sum[t] + parts[(s * NT + t) * LANES + lane];
		barrier(CLK_LOCAL_MEM_FENCE);
#endif
	}

#if !INTEGER
	UNROLL
	for (int t = 0; t < NT; t++)
		parts[(slice * NT + t) * LANES + lane] = sum[t];
	barrier(CLK_LOCAL_MEM_FENCE);
#endif
	UNROLL
	for (int t = 0; t < NT; t++) {
		const int o = tile * TILE + t * LANES + lane;
		if (slice != 0 || o >= n)
			continue;
		float y = sum[t];
#if INTEGER
#if FORMAT == INT8
		y = y * as_float(LOAD(ws, t * LANES + lane));
#endif
#else
		for (int s = 1; s < SPLIT; s++)
			y += parts[(s * NT + t) * LANES + lane];
#endif
		y *= scale;
		if (bias >= 0)
			y += LOAD(vectors, bias + o);
		const long to = (long)row * outStride + first + o;
		if (hasAdd)
			y += LOAD(add, to);
		STORE(out, to, y);
	}
	COUNT_END;
}
#undef FORMAT
#undef NAME

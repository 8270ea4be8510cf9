// tiles: the linear of linear.cl by the matrix unit for many rows, with the same arguments;
// unit.cl stands before it. A group is GROUP sub-groups that take neighbouring columns of
// the same rows, which they find in the cache of their core. A sub-group computes CT tiles of
// 16 outputs for 8 · MT rows, and adds slices of K in the order in which matrix.cl adds
// those of its sub-groups: a row gets the same bits from either. Sums of slices wait in
// local memory.

#define BLOCKS (MT * CT * NT) // of 8 rows by LANES outputs

__kernel SUBGROUP __attribute__((reqd_work_group_size(LANES * GROUP, 1, 1)))
void NAME(__global const uint *arena, long base, __global const long *bases, __global const int *which,
	__global const uint *x, int stride, __global const float *xs, __global const int *xsums, int share,
	int scales, int zeros, int group, __global const float *vectors, long bias,
	__global const float *add, int hasAdd, __global float *out, int outStride, int first,
	int n, int k, int rows, int height, float scale COUNTER)
{
	const int lane = get_local_id(0) % LANES, sub = SLICE_ID;
	const int tile0 = ((int)get_group_id(0) * GROUP + sub) * CT, row0 = get_group_id(1) * (8 * MT); // height is 8 · MT
	const int last = (n + TILE - 1) / TILE - 1;
	SHARED(exchange)
	COUNT_BEGIN(lane)
	const int units = (k + DEPTH - 1) / DEPTH;
#if INTEGER
	const int columns = group ? k / group : 1; // scales of a row
#elif FORMAT == FP8
	const int columns = group ? (k + group - 1) / group : 1;
#endif
	long at[8 * MT]; // where each row of the operands begins
	float sum[BLOCKS][8];
	UNROLL
	for (int i = 0; i < 8 * MT; i++)
		at[i] = (long)min(row0 + i, rows - 1) * stride;
	UNROLL
	for (int b = 0; b < BLOCKS; b++)
		UNROLL
		for (int i = 0; i < 8; i++)
			sum[b][i] = 0.0f;

#if INTEGER
	for (int u = 0; u < units; u++) {
#else
	__local float totals[GROUP * LANES * BLOCKS * 8];
	__local float *mine = totals + sub * LANES * BLOCKS * 8 + lane;
	const int each = (units + SPLIT - 1) / SPLIT;
	for (int slice = 0; slice < SPLIT; slice++) {
	for (int u = slice * each; u < min((slice + 1) * each, units); u++) {
#endif
		ACC acc[BLOCKS];
		UNROLL
		for (int b = 0; b < BLOCKS; b++)
			acc[b] = (ACC)(0);
		for (int s = 0; s < LOADS; s++) {
			uint v[CT][DROWS * NT];
			UNROLL
			for (int c = 0; c < CT; c++)
				CAT(NAME, _block)(arena + base + ((long)min(tile0 + c, last) * units + u) * UNIT * TILE + s * DROWS * TILE, v[c] COUNT_ON);
			UNROLL
			for (int p = 0; p < USES; p++)
				UNROLL
				for (int m = 0; m < MT; m++) {
					SLICE a[8];
					UNROLL
					for (int i = 0; i < 8; i++)
						a[i] = block_slice(x + at[m * 8 + i] + ((long)u * LOADS * USES + p * LOADS + s) * 8);
					const A rows8 = vload8(0, a);
					UNROLL
					for (int c = 0; c < CT; c++)
						UNROLL
						for (int t = 0; t < NT; t++)
							acc[(m * CT + c) * NT + t] = DPAS_OF(rows8, CAT(NAME, _column)(v[c], t, p), acc[(m * CT + c) * NT + t], SHARED_OF(exchange, sub));
				}
		}
		UNROLL
		for (int c = 0; c < CT; c++) {
			const int tile = min(tile0 + c, last);
#if INTEGER || FORMAT == FP8
			__global const uint *ws = arena + base + scales + (long)tile * columns * TILE;
#endif
#if INTEGER
			__global const uint *wz = arena + base + zeros + (long)tile * columns * TILE;
#endif
			UNROLL
			for (int t = 0; t < NT; t++) {
				UNIT_SCALE(s, zero, t)
				UNROLL
				for (int m = 0; m < MT; m++) {
					const int b = (m * CT + c) * NT + t;
#if INTEGER
					int exact[8];
					vstore8(acc[b], 0, exact);
					UNROLL
					for (int i = 0; i < 8; i++) {
						const int r = u * rows + row0 + m * 8 + i; // of the last rows some are not there, and are not stored
						float f = LOAD_SAME(xs, r);
#if FORMAT != INT8
						exact[i] -= zero * LOAD_SAME(xsums, r);
						f = f * s;
#endif
						sum[b][i] = sum[b][i] + (float)exact[i] * f;
					}
#else
					float y[8];
					vstore8(acc[b], 0, y);
					UNROLL
					for (int i = 0; i < 8; i++)
						sum[b][i] = ADD_SCALED(y[i], s, sum[b][i]);
#endif
				}
			}
		}
#if INTEGER
	}
#else
	}
		UNROLL
		for (int b = 0; b < BLOCKS; b++)
			UNROLL
			for (int i = 0; i < 8; i++) {
				const int to = (b * 8 + i) * LANES;
				mine[to] = slice == 0 ? sum[b][i] : mine[to] + sum[b][i];
				sum[b][i] = 0.0f;
			}
	}
#endif

	UNROLL
	for (int c = 0; c < CT; c++)
		UNROLL
		for (int t = 0; t < NT; t++) {
			const int o = (tile0 + c) * TILE + t * LANES + lane;
			if (o >= n)
				continue;
			const float shift = bias >= 0 ? LOAD(vectors, bias + o) : 0.0f;
#if FORMAT == INT8
			const float ws = as_float(LOAD(arena, base + scales + (tile0 + c) * TILE + t * LANES + lane));
#endif
			UNROLL
			for (int m = 0; m < MT; m++)
				UNROLL
				for (int i = 0; i < 8; i++) {
					const int b = (m * CT + c) * NT + t, r = row0 + m * 8 + i;
					if (r >= rows)
						continue;
#if INTEGER
					float y = sum[b][i];
#if FORMAT == INT8
					y = y * ws;
#endif
#else
					float y = mine[(b * 8 + i) * LANES];
#endif
					y *= scale;
					if (bias >= 0)
						y += shift;
					const long to = (long)r * outStride + first + o;
					if (hasAdd)
						y += LOAD(add, to);
					STORE(out, to, y);
				}
		}
	COUNT_END;
}
#undef BLOCKS
#undef MT
#undef CT
#undef FORMAT
#undef NAME

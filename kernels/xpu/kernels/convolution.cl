// Convolutions. The step has, for each of them and each sequence, the grid of its rows and
// that of the window's places: where each begins, its lines, and the rows of a line. Behind
// the last sequence stand places that begin beyond all rows.
#define GRID 6

// grid_of is the grids of the sequence that a place is of.
inline __global const int *grid_of(__global const int *grids, int most, int row) {
	int seq = 0;
	while (seq + 1 < most && grids[(seq + 1) * GRID + 3] <= row)
		seq++;
	return grids + seq * GRID;
}

// seen is the row that a tap sees at a place, or -1 for the zeros beside the grid.
inline int seen(__global const int *grid, int row, int down, int along, int stride0, int stride1, int dilation0, int dilation1, int before0, int before1) {
	const int place = row - grid[3];
	const int line = place / grid[5] * stride0 - before0 + down * dilation0;
	const int at = place % grid[5] * stride1 - before1 + along * dilation1;
	if (line < 0 || line >= grid[1] || at < 0 || at >= grid[2])
		return -1;
	return grid[0] + line * grid[2] + at;
}

// features copies what the step brings.
__kernel void features(__global const int *step, int from, __global float *out) {
	const long i = get_global_id(0);
	out[i] = as_float(step[from + i]);
}

// gather_rows puts the channels that a window sees side by side, tap by tap: operands of a linear.
__kernel void gather_rows(__global const float *in, int channels, __global const int *step, int grids, int most, int kernel1,
	int stride0, int stride1, int dilation0, int dilation1, int before0, int before1, __global float *out)
{
	const int c = get_global_id(0), tap = get_global_id(1), row = get_global_id(2);
	const int from = seen(grid_of(step + grids, most, row), row, tap / kernel1, tap % kernel1, stride0, stride1, dilation0, dilation1, before0, before1);
	out[((long)row * get_global_size(1) + tap) * channels + c] = from < 0 ? 0.0f : in[(long)from * channels + c];
}

// convolve is one output of a place, of a convolution in groups: taps in their order, the
// channels of each ascending.
__kernel void convolve(__global const float *in, int channels, __global const int *step, int grids, int most, int kernel0, int kernel1,
	int stride0, int stride1, int dilation0, int dilation1, int before0, int before1,
	__global const uint *arena, long base, int format, int groups, __global const float *vectors, long bias, __global float *out)
{
	const int o = get_global_id(0), outputs = get_global_size(0), row = get_global_id(1);
	const int each = channels / groups, first = o / (outputs / groups) * each, k = kernel0 * kernel1 * each;
	const int depth = format == F32 ? k : format == F16 ? (k + 1) / 2 : (k + 15) / 16 * 8;
	__global const int *grid = grid_of(step + grids, most, row);
	__global const uint *w = arena + base + (long)(o / TILE) * depth * TILE + o % TILE;
	float sum = 0.0f;
	for (int tap = 0; tap < kernel0 * kernel1; tap++) {
		const int from = seen(grid, row, tap / kernel1, tap % kernel1, stride0, stride1, dilation0, dilation1, before0, before1);
		if (from < 0)
			continue;
		for (int c = 0; c < each; c++) {
			const int i = tap * each + c;
			float x = in[(long)from * channels + first + c], v;
			if (format == F32) {
				v = as_float(w[(long)i * TILE]);
			} else {
				const uint code = w[(long)(i / 2) * TILE] >> (i % 2 * 16) & 0xffffu;
				v = format == F16 ? from_f16(code) : from_bf16(code);
				x = format == F16 ? x : from_bf16(operand_bf16(x));
			}
			sum = fma(x, v, sum);
		}
	}
	out[(long)row * outputs + o] = bias >= 0 ? sum + vectors[bias + o] : sum;
}

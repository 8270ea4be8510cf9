// Low-rank corrections. A slot is HEAD dwords, of which the first is its rank and the
// second its factor, then A (rank, k), then B (n, rank): bf16 in tiles of 16 outputs, eight
// dword rows a unit, as bf16 linears have them.
#define HEAD 16
#define SLICES 4

// lora_slot is where the slot of a row's adapter begins, or -1.
inline long lora_slot(__global const int *step, int seqs, int adapters, long base, long each, int row) {
	const int slot = step[adapters + step[seqs + row]] - 1;
	return slot < 0 ? -1 : base + slot * each;
}

// lora_depth is the dword rows of a tile of so many columns.
inline int lora_depth(int columns) { return ((columns + 1) / 2 + 7) / 8 * 8; }

// lora_down is A · x for one row, as operands of B. A group computes 16 ranks: item
// (slice, lane) sums its slice of the columns, and the slices are added in order.
__kernel __attribute__((reqd_work_group_size(SLICES * TILE, 1, 1)))
void lora_down(__global const uint *arena, long base, long each, __global const int *step, int seqs, int adapters,
	__global const float *x, int k, __global float *middle, int stride, int first COUNTER)
{
	COUNT_BEGIN(get_local_id(0) % TILE)
	const int lane = get_local_id(0) % TILE, slice = get_local_id(0) / TILE;
	const int tile = get_group_id(0), row = get_group_id(1);
	__local float parts[SLICES * TILE];
	const long slot = lora_slot(step, seqs, adapters, base, each, row);
	if (slot < 0 || tile * TILE >= (int)arena[slot])
		return;
	const int depth = lora_depth(k), per = depth / 8;
	const int begin = per * slice / SLICES * 8, end = per * (slice + 1) / SLICES * 8;
	__global const uint *w = arena + slot + HEAD + (long)tile * depth * TILE + lane;
	__global const float *in = x + (long)row * k;
	float even = 0.0f, odd = 0.0f;
	for (int d = begin; d < end && 2 * d < k; d++) {
		const uint v = LOAD(w, d * TILE);
		even = fma(from_bf16(v & 0xffffu), from_bf16(operand_bf16(LOAD_SAME(in, 2 * d))), even);
		if (2 * d + 1 < k)
			odd = fma(as_float(v & 0xffff0000u), from_bf16(operand_bf16(LOAD_SAME(in, 2 * d + 1))), odd);
	}
	parts[slice * TILE + lane] = even + odd;
	barrier(CLK_LOCAL_MEM_FENCE);
	if (slice == 0) {
		float sum = parts[lane];
		for (int s = 1; s < SLICES; s++)
			sum += parts[s * TILE + lane];
		STORE(middle, (long)row * stride + first + tile * TILE + lane, from_bf16(operand_bf16(sum)));
	}
	COUNT_END;
}

// lora_up adds factor · B · middle to one output of a row.
__kernel void lora_up(__global const uint *arena, long base, long each, __global const int *step, int seqs, int adapters,
	__global const float *middle, int stride, int first, int k, __global float *out, int outStride, int column COUNTER)
{
	COUNT_BEGIN(get_global_id(0))
	const int o = get_global_id(0), row = get_global_id(1);
	const long slot = lora_slot(step, seqs, adapters, base, each, row);
	if (slot < 0 || arena[slot] == 0u)
		return;
	const int rank = (int)arena[slot], depth = lora_depth(rank);
	__global const uint *w = arena + slot + HEAD + (long)((rank + TILE - 1) / TILE) * lora_depth(k) * TILE
		+ (long)(o / TILE) * depth * TILE + o % TILE;
	__global const float *in = middle + (long)row * stride + first;
	float even = 0.0f, odd = 0.0f;
	for (int d = 0; 2 * d < rank; d++) {
		const uint v = LOAD(w, d * TILE);
		even = fma(from_bf16(v & 0xffffu), LOAD_SAME(in, 2 * d), even);
		if (2 * d + 1 < rank)
			odd = fma(as_float(v & 0xffff0000u), LOAD_SAME(in, 2 * d + 1), odd);
	}
	__global float *to = out + (long)row * outStride + column + o;
	STORE(to, 0, LOAD(to, 0) + (even + odd) * as_float(arena[slot + 1]));
	COUNT_END;
}

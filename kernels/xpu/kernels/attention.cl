// Paged attention. Keys lie in pages as (head, dim, token), so that items that
// take one token each read side by side; values as (head, token, dim). attend.cl holds
// the part that reads them.

inline void store_page(__global uchar *pages, long i, int type, float x COUNTING) {
	if (type == PAGE_F32)
		STORE((__global float *)pages, i, x);
	else if (type == PAGE_BF16)
		STORE((__global ushort *)pages, i, (ushort)to_bf16(x));
	else if (type == PAGE_F16)
		STORE((__global ushort *)pages, i, (ushort)to_f16(x));
	else
		STORE(pages, i, (uchar)to_e4m3(x));
}

// Geometry of one layer's pages: block b begins at (layer · blocks + b) · pageElements.
typedef struct { int type, blockTokens, heads, keyDim, valueDim; long layerBlocks; } Pages;

inline long key_at(const Pages p, int block, int head, int dim, int slot) {
	return (((p.layerBlocks + block) * p.heads + head) * p.keyDim + dim) * p.blockTokens + slot;
}

inline long value_at(const Pages p, int block, int head, int dim, int slot) {
	return (((p.layerBlocks + block) * p.heads + head) * p.blockTokens + slot) * p.valueDim + dim;
}

// keep writes one column of one row's keys or values to its page.
__kernel void keep(__global const float *x, int stride, int first, int isValue,
	__global uchar *pages, int type, int blockTokens, int heads, int keyDim, int valueDim, long layerBlocks,
	__global const int *step, int seqs, int selfs, int tables COUNTER)
{
	COUNT_BEGIN(0)
	const Pages p = {type, blockTokens, heads, keyDim, valueDim, layerBlocks};
	const int c = get_global_id(0), row = get_global_id(1);
	const int self = step[selfs + row];
	const int block = step[step[tables + step[seqs + row]] + self / blockTokens];
	const float v = LOAD(x, (long)row * stride + first + c);
	if (isValue)
		store_page(pages, value_at(p, block, c / valueDim, c % valueDim, self % blockTokens), type, v COUNT_ON);
	else
		store_page(pages, key_at(p, block, c / keyDim, c % keyDim, self % blockTokens), type, v COUNT_ON);
	COUNT_END;
}

// keep_int8 writes one head of one row's keys or values to its page: codes and their scale,
// max/127. A group is one head of one row.
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void keep_int8(__global const float *x, int stride, int first, int isValue,
	__global char *pages, int type, int blockTokens, int heads, int keyDim, int valueDim, long layerBlocks,
	__global const int *step, int seqs, int selfs, int tables COUNTER)
{
	COUNT_BEGIN(0)
	__local uint greatest[64];
	const int i = get_local_id(0), head = get_group_id(0), row = get_group_id(1);
	const int self = step[selfs + row], slot = self % blockTokens, dim = isValue ? valueDim : keyDim;
	const int block = step[step[tables + step[seqs + row]] + self / blockTokens];
	__global const float *from = x + (long)row * stride + first + head * dim;
	uint most = 0u; // magnitudes order as their bits do, NaN above all
	for (int d = i; d < dim; d += 64)
		most = max(most, as_uint(LOAD(from, d)) & 0x7fffffffu);
	greatest[i] = most;
	barrier(CLK_LOCAL_MEM_FENCE);
	for (int n = 0; n < 64; n++)
		most = max(most, greatest[n]);
	float scale = 0.0f, inverse = 0.0f;
	if (most >= 0x7f800000u)
		scale = NaN;
	else if (as_float(most) >= 1e-30f) {
		scale = as_float(most) / 127.0f;
		inverse = 127.0f / as_float(most);
	}
	__global char *to = pages + ((layerBlocks + block) * heads + head) * INT8_HEAD(dim, blockTokens);
	for (int d = i; d < dim; d += 64) {
		const int code = inverse != 0.0f ? (int)rint(LOAD(from, d) * inverse) : 0;
		STORE(to, isValue ? (long)slot * dim + d : (long)d * blockTokens + slot, (char)code);
	}
	if (i == 0)
		STORE((__global float *)(to + INT8_CODES(dim * blockTokens)), slot, scale);
	COUNT_END;
}

// merge puts the splits of one head of one row together. A sink takes part in the
// softmax and has no value. parts begins with firstRow.
__kernel void merge(__global const float *parts, int splits, int firstRow, int valueDim, __global const float *vectors, long sinks,
	__global const int *step, int seqs, int selfs, int contexts, int bidirectional, __global float *out COUNTER)
{
	COUNT_BEGIN(get_global_id(0))
	const int d = get_global_id(0), h = get_global_id(1), row = firstRow + get_global_id(2), heads = get_global_size(1);
	const int last = bidirectional ? step[contexts + step[seqs + row]] - 1 : step[selfs + row];
	const int used = last / 256 + 1;
	__global const float *part = parts + ((long)(row - firstRow) * heads + h) * splits * (valueDim + 2);
	float most = sinks >= 0 ? vectors[sinks + h] : -INFINITY;
	for (int s = 0; s < used; s++)
		most = fmax(most, LOAD_SAME(part, s * (valueDim + 2)));
	float sum = sinks >= 0 ? exp(vectors[sinks + h] - most) : 0.0f, y = 0.0f;
	for (int s = 0; s < used; s++) {
		__global const float *p = part + s * (valueDim + 2);
		if (p[0] == -INFINITY)
			continue; // the row sees nothing of it, and no sums were left
		const float f = exp(p[0] - most);
		sum = fma(LOAD_SAME(p, 1), f, sum);
		y = fma(LOAD(p, 2 + d), f, y);
	}
	STORE(out, ((long)row * heads + h) * valueDim + d, y / sum);
	COUNT_END;
}

// Paged attention. Keys lie in pages as (head, dim, token), so that items that
// take one token each read side by side; values as (head, token, dim).

inline void store_page(__global uchar *pages, long i, int type, float x) {
	if (type == PAGE_F32)
		((__global float *)pages)[i] = x;
	else if (type == PAGE_BF16)
		((__global ushort *)pages)[i] = (ushort)to_bf16(x);
	else if (type == PAGE_F16)
		((__global ushort *)pages)[i] = (ushort)to_f16(x);
	else
		pages[i] = (uchar)to_e4m3(x);
}

inline float load_page(__global const uchar *pages, long i, int type) {
	if (type == PAGE_F32)
		return ((__global const float *)pages)[i];
	if (type == PAGE_BF16)
		return from_bf16(((__global const ushort *)pages)[i]);
	if (type == PAGE_F16)
		return from_f16(((__global const ushort *)pages)[i]);
	return from_e4m3(pages[i]);
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
	__global const int *step, int seqs, int selfs, int tables)
{
	const Pages p = {type, blockTokens, heads, keyDim, valueDim, layerBlocks};
	const int c = get_global_id(0), row = get_global_id(1);
	const int self = step[selfs + row];
	const int block = step[step[tables + step[seqs + row]] + self / blockTokens];
	const float v = x[(long)row * stride + first + c];
	if (isValue)
		store_page(pages, value_at(p, block, c / valueDim, c % valueDim, self % blockTokens), type, v);
	else
		store_page(pages, key_at(p, block, c / keyDim, c % keyDim, self % blockTokens), type, v);
}

// attend is one split of 256 tokens of one query head of one row: online softmax
// over what the row sees of it. 64 items score a token each, four times, then take
// columns of the values. What it leaves in parts is (greatest, total, sums…), which
// merge puts together in ascending order.
//
// Without pages (keys is then null) keys and values are rows of the step: an encoder.
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void attend(__global const float *q, int qStride, int qFirst, int queriesPerHead,
	__global const float *kRows, int kStride, int kFirst, __global const float *vRows, int vStride, int vFirst,
	__global const uchar *keys, __global const uchar *values, int hasValues, int type, int blockTokens, int heads, int keyDim, int valueDim, long layerBlocks,
	__global const int *step, int seqs, int selfs, int firsts, int contexts, int tables,
	float scale, int window, float cap, int bidirectional, __global float *parts, int splits)
{
	__local float scores[256];
	const int i = get_local_id(0), split = get_group_id(0), h = get_group_id(1), row = get_group_id(2);
	const int seq = step[seqs + row], self = step[selfs + row], group = h / queriesPerHead;
	const Pages p = {type, blockTokens, heads, keyDim, valueDim, layerBlocks};
	int from = 0, to = bidirectional ? step[contexts + seq] - 1 : self;
	if (window > 0) {
		from = max(0, self - window + 1);
		if (bidirectional)
			to = min(to, self + window - 1);
	}
	from = max(from, split * 256);
	to = min(to, split * 256 + 255);
	const int paged = tables >= 0;
	__global const int *table = step + (paged ? step[tables + seq] : 0);
	const int head0 = step[firsts + seq];
	__global const float *query = q + (long)row * qStride + qFirst + h * keyDim;
	__global float *part = parts + (((long)row * get_num_groups(1) + h) * splits + split) * (valueDim + 2);

	for (int t = from + i; t <= to; t += 64) {
		float dot = 0.0f;
		if (paged) {
			const long at = key_at(p, table[t / blockTokens], group, 0, t % blockTokens);
			for (int d = 0; d < keyDim; d++)
				dot = fma(query[d], load_page(keys, at + (long)d * blockTokens, type), dot);
		} else
			for (int d = 0; d < keyDim; d++)
				dot = fma(query[d], kRows[(long)(head0 + t) * kStride + kFirst + group * keyDim + d], dot);
		dot *= scale;
		scores[t - split * 256] = cap > 0.0f ? cap * tanh(dot / cap) : dot;
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	float most = -INFINITY, sum = 0.0f;
	for (int t = from; t <= to; t++)
		most = fmax(most, scores[t - split * 256]);
	barrier(CLK_LOCAL_MEM_FENCE);
	for (int t = from + i; t <= to; t += 64)
		scores[t - split * 256] = most == -INFINITY ? 0.0f : exp(scores[t - split * 256] - most);
	barrier(CLK_LOCAL_MEM_FENCE);
	for (int t = from; t <= to; t++)
		sum += scores[t - split * 256];
	for (int d = i; d < valueDim; d += 64) {
		float y = 0.0f;
		for (int t = from; t <= to; t++) {
			float v;
			if (!paged)
				v = vRows[(long)(head0 + t) * vStride + vFirst + group * valueDim + d];
			else if (hasValues)
				v = load_page(values, value_at(p, table[t / blockTokens], group, d, t % blockTokens), type);
			else // MLA: values are the first columns of the keys
				v = load_page(keys, key_at(p, table[t / blockTokens], group, d, t % blockTokens), type);
			y = fma(scores[t - split * 256], v, y);
		}
		part[2 + d] = y;
	}
	if (i == 0) {
		part[0] = most;
		part[1] = sum;
	}
}

// merge puts the splits of one head of one row together. A sink takes part in the
// softmax and has no value.
__kernel void merge(__global const float *parts, int splits, int valueDim, __global const float *vectors, long sinks,
	__global const int *step, int seqs, int selfs, int contexts, int bidirectional, __global float *out)
{
	const int d = get_global_id(0), h = get_global_id(1), row = get_global_id(2), heads = get_global_size(1);
	const int last = bidirectional ? step[contexts + step[seqs + row]] - 1 : step[selfs + row];
	const int used = last / 256 + 1;
	__global const float *part = parts + ((long)row * heads + h) * splits * (valueDim + 2);
	float most = sinks >= 0 ? vectors[sinks + h] : -INFINITY;
	for (int s = 0; s < used; s++)
		most = fmax(most, part[s * (valueDim + 2)]);
	float sum = sinks >= 0 ? exp(vectors[sinks + h] - most) : 0.0f, y = 0.0f;
	for (int s = 0; s < used; s++) {
		__global const float *p = part + s * (valueDim + 2);
		const float f = p[0] == -INFINITY ? 0.0f : exp(p[0] - most);
		sum = fma(p[1], f, sum);
		y = fma(p[2 + d], f, y);
	}
	out[((long)row * heads + h) * valueDim + d] = y / sum;
}

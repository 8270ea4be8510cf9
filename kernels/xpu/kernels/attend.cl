// attend: one split of 256 tokens for one head of keys and values and several queries:
// online softmax over what each sees of it. The host includes this text once for each
// TYPE of pages, under NAME; ROWS stands for an encoder's, whose keys and values are rows
// of the step.
//
// A group of 64 items serves QUERIES queries: the heads that share this head of keys
// and values, of one row (decode) or of several rows of a sequence (prompts). So each key
// and value is read once for all of them. Items score a token each, then take columns of
// the values. What a group leaves in parts for each query is (greatest, total, sums…),
// which merge puts together in ascending order; nothing but -inf where a row sees nothing
// of the split. The order of sums is the same however many queries a group has.

#if TYPE == ROWS
#define PAGED 0
#define STORED float
#define NUMBER(x) (x)
#elif TYPE == PAGE_F32
#define PAGED 1
#define STORED float
#define NUMBER(x) (x)
#elif TYPE == PAGE_BF16
#define PAGED 1
#define STORED ushort
#define NUMBER(x) from_bf16(x)
#elif TYPE == PAGE_F16
#define PAGED 1
#define STORED ushort
#define NUMBER(x) from_f16(x)
#elif TYPE == PAGE_INT8
#define PAGED 1
#define STORED char
#define NUMBER(x) ((float)(x))
#else
#define PAGED 1
#define STORED uchar
#define NUMBER(x) from_e4m3(x)
#endif

// Where a head's keys or values of a page begin, and the scale of one of its tokens. Scores
// and chances are multiplied by scales, not codes.
#if TYPE == PAGE_INT8
#define HEAD_AT(page, dim) ((page) * INT8_HEAD(dim, blockTokens))
#define SCALE_OF(pages, page, dim, slot) LOAD((__global const float *)((pages) + HEAD_AT(page, dim) + INT8_CODES((dim) * blockTokens)), slot)
#else
#define HEAD_AT(page, dim) ((page) * (dim) * blockTokens)
#endif

#define PARTS (64 / QUERIES) // items that share the softmax of a query

// tiles is where the tiles of rows are in step: pairs of the first row and how many.
// parts begins with firstRow.
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void NAME(__global const float *q, int qStride, int qFirst, int shared,
	__global const float *kRows, int kStride, int kFirst, __global const float *vRows, int vStride, int vFirst,
	__global const STORED *keys, __global const STORED *values, int hasValues, int blockTokens, int heads, int keyDim, int valueDim, long layerBlocks,
	__global const int *step, int seqs, int selfs, int firsts, int contexts, int tables, int tiles,
	float scale, int window, float cap, int bidirectional, __global float *parts, int splits, int firstRow, __local float *queries COUNTER)
{
	__local float scores[QUERIES * 256];
	__local float ends[64];
#if TYPE == PAGE_INT8
	__local float valueScales[256]; // of the split's tokens, for all queries
#endif
	const int i = get_local_id(0), split = get_group_id(0);
	const int perRow = min(shared, QUERIES), bands = (shared + QUERIES - 1) / QUERIES;
	const int head = get_group_id(1) / bands, band = get_group_id(1) % bands * QUERIES;
	const int row0 = step[tiles + 2 * get_group_id(2)], rows = step[tiles + 2 * get_group_id(2) + 1];
	const int seq = step[seqs + row0], self0 = step[selfs + row0], base = split * 256;
	COUNT_BEGIN(i)

	// What the rows see of the split: the first row from from on, the last row up to to.
	const int end = step[contexts + seq] - 1, reach = window > 0 ? window : 1 << 30;
	const int from = max(base, self0 - reach + 1);
	const int last = self0 + rows - 1;
	const int to = min(base + 255, bidirectional ? (window > 0 ? min(end, last + window - 1) : end) : last);
	const int queriesHere = min(perRow, shared - band);

	for (int n = i; n < QUERIES * keyDim; n += 64) {
		const int s = n / keyDim, d = n % keyDim, r = s / perRow, g = band + s % perRow;
		const int there = r < rows && s % perRow < queriesHere;
		const long at = (long)(row0 + (there ? r : 0)) * qStride + qFirst + (head * shared + (there ? g : 0)) * keyDim + d;
		queries[d * QUERIES + s] = there ? LOAD(q, at) : 0.0f;
	}
	barrier(CLK_LOCAL_MEM_FENCE);

#if PAGED
	__global const int *table = step + step[tables + seq];
#else
	const long head0 = step[firsts + seq];
#endif
	for (int t = from + i; t <= to; t += 64) {
		float dot[QUERIES];
		UNROLL
		for (int s = 0; s < QUERIES; s++)
			dot[s] = 0.0f;
#if PAGED
		const long keyPage = (layerBlocks + table[t / blockTokens]) * heads + head;
		__global const STORED *key = keys + HEAD_AT(keyPage, keyDim) + t % blockTokens;
		const int step_ = blockTokens;
#else
		__global const float *key = kRows + (head0 + t) * kStride + kFirst + head * keyDim;
		const int step_ = 1;
#endif
		for (int d = 0; d < keyDim; d++) {
			const float k = NUMBER(LOAD(key, (long)d * step_));
			UNROLL
			for (int s = 0; s < QUERIES; s++)
				dot[s] = fma(queries[d * QUERIES + s], k, dot[s]);
		}
#if TYPE == PAGE_INT8
		const float keyScale = SCALE_OF(keys, keyPage, keyDim, t % blockTokens);
		UNROLL
		for (int s = 0; s < QUERIES; s++)
			dot[s] *= keyScale;
		valueScales[t - base] = hasValues ? SCALE_OF(values, keyPage, valueDim, t % blockTokens) : keyScale;
#endif
		UNROLL
		for (int s = 0; s < QUERIES; s++) {
			const int self = self0 + s / perRow;
			int sees = t > self - reach;
			if (!bidirectional)
				sees = sees && t <= self;
			else if (window > 0)
				sees = sees && t < self + window;
			const float x = dot[s] * scale;
			scores[s * 256 + t - base] = !sees ? -INFINITY : cap > 0.0f ? cap * tanh(x / cap) : x;
		}
	}
	barrier(CLK_LOCAL_MEM_FENCE);

	// The softmax: each item takes every PARTS-th token of one query.
	__local float *mine = scores + i / PARTS * 256 - base;
	float most = -INFINITY;
	for (int t = base + i % PARTS; t <= to; t += PARTS)
		if (t >= from)
			most = fmax(most, mine[t]);
	ends[i] = most;
	barrier(CLK_LOCAL_MEM_FENCE);
	for (int p = 0; p < PARTS; p++)
		most = fmax(most, ends[i / PARTS * PARTS + p]);
	barrier(CLK_LOCAL_MEM_FENCE);
	float sum = 0.0f;
	for (int t = base + i % PARTS; t <= to; t += PARTS)
		if (t >= from) {
			const float p = mine[t] == -INFINITY ? 0.0f : exp(mine[t] - most);
			sum += p;
#if TYPE == PAGE_INT8
			mine[t] = p * valueScales[t - base];
#else
			mine[t] = p;
#endif
		}
	ends[i] = sum;
	barrier(CLK_LOCAL_MEM_FENCE);
	const int s0 = i / PARTS, r0 = s0 / perRow;
	if (i % PARTS == 0 && r0 < rows && s0 % perRow < queriesHere) {
		sum = 0.0f;
		for (int p = 0; p < PARTS; p++)
			sum += ends[i + p];
		const int h = head * shared + band + s0 % perRow;
		__global float *part = parts + (((long)(row0 - firstRow + r0) * heads * shared + h) * splits + split) * (valueDim + 2);
		STORE(part, 0, most);
		STORE(part, 1, sum);
	}

	for (int d = i; d < valueDim && from <= to; d += 64) {
		float y[QUERIES];
		UNROLL
		for (int s = 0; s < QUERIES; s++)
			y[s] = 0.0f;
#if PAGED
		for (int t = from; t <= to;) {
			const int slot = t % blockTokens, stop = min(to, t + blockTokens - 1 - slot);
			const long page = (layerBlocks + table[t / blockTokens]) * heads + head;
			// MLA: values are the first columns of the keys.
			__global const STORED *value = hasValues ? values + HEAD_AT(page, valueDim) + (long)slot * valueDim + d : keys + HEAD_AT(page, keyDim) + (long)d * blockTokens + slot;
			const int step_ = hasValues ? valueDim : 1;
			for (; t <= stop; t++) {
				const float v = NUMBER(LOAD(value, 0));
				value += step_;
				UNROLL
				for (int s = 0; s < QUERIES; s++)
					y[s] = fma(scores[s * 256 + t - base], v, y[s]);
			}
		}
#else
		for (int t = from; t <= to; t++) {
			const float v = LOAD(vRows, (head0 + t) * vStride + vFirst + head * valueDim + d);
			UNROLL
			for (int s = 0; s < QUERIES; s++)
				y[s] = fma(scores[s * 256 + t - base], v, y[s]);
		}
#endif
		UNROLL
		for (int s = 0; s < QUERIES; s++) {
			const int r = s / perRow, h = head * shared + band + s % perRow;
			if (r < rows && s % perRow < queriesHere)
				STORE(parts, (((long)(row0 - firstRow + r) * heads * shared + h) * splits + split) * (valueDim + 2) + 2 + d, y[s]);
		}
	}
	COUNT_END;
}

#undef HEAD_AT
#undef SCALE_OF
#undef PAGED
#undef STORED
#undef NUMBER
#undef PARTS
#undef TYPE
#undef NAME

// Operations on rows: embedding, norm, RoPE, activations, copies, pooling.

// element (o, k) of a weight, as a number.
inline float element(__global const uint *arena, long base, int format, int k, int scales, int zeros, int group, int o, int c COUNTING) {
	const int lane = o % TILE;
	const long tile = o / TILE;
	__global const uint *w = arena + base + lane;
	__global const float *ws = (__global const float *)(arena + base + scales) + lane;
	const long depth128 = (k + 127) / 128;
	switch (format) {
	case F32:
		return as_float(LOAD(w, (tile * k + c) * TILE));
	case BF16:
		return from_bf16(LOAD(w, (tile * ((k + 15) / 16 * 8) + c / 2) * TILE) >> (c % 2 * 16) & 0xffffu);
	case F16:
		return from_f16(LOAD(w, (tile * ((k + 1) / 2) + c / 2) * TILE) >> (c % 2 * 16) & 0xffffu);
	case INT8:
		return (float)(char)(LOAD(w, (tile * depth128 * 32 + c / 4) * TILE) >> (c % 4 * 8) & 255u) * LOAD(ws, tile * TILE);
	case FP8: {
		const int columns = group ? (k + group - 1) / group : 1;
		return from_e4m3(LOAD(w, (tile * depth128 * 32 + c / 4) * TILE) >> (c % 4 * 8) & 255u) * LOAD(ws, (tile * columns + (group ? c / group : 0)) * TILE);
	}
	case MXFP4: {
		uint scale = LOAD((__global const uchar *)(arena + base + scales), (tile * (k / 32) + c / 32) * TILE + lane);
		return from_e2m1(LOAD(w, (tile * (k / 8) + c / 8) * TILE) >> (c % 8 * 4)) * from_e8m0(scale);
	}
	default: { // four-bit codes: columns 0 to 63 of a group are low nibbles
		const int i = c % 128;
		uint code = LOAD(w, (tile * depth128 * 16 + c / 128 * 16 + i % 64 / 4) * TILE) >> (i % 4 * 8 + i / 64 * 4) & 15u;
		const int columns = k / group;
		uint zero = zeros ? LOAD(arena, base + zeros + (tile * columns + c / group) * TILE + lane) : 8u;
		return (float)((int)code - (int)zero) * LOAD(ws, (tile * columns + c / group) * TILE);
	}
	}
}

__kernel void embed(__global const uint *arena, long base, int format, int k, int scales, int zeros, int group,
	long order, __global const int *step, int ids, float scale, __global float *out COUNTER)
{
	COUNT_BEGIN(0)
	const int c = get_global_id(0), row = get_global_id(1);
	const int to = order < 0 ? c : (int)LOAD(arena, order + c); // stored columns may be in another order
	STORE(out, (long)row * k + to, element(arena, base, format, k, scales, zeros, group, step[ids + row], c COUNT_ON) * scale);
	COUNT_END;
}

// add_rows is the residual stream: sum += x.
__kernel void add_rows(__global const float *x, __global float *sum COUNTER) {
	COUNT_BEGIN(0)
	const long i = get_global_id(0);
	STORE(sum, i, LOAD(sum, i) + LOAD(x, i));
	COUNT_END;
}

__kernel void copy_rows(__global const float *in, __global float *out COUNTER) {
	COUNT_BEGIN(0)
	const long i = get_global_id(0);
	STORE(out, i, LOAD(in, i));
	COUNT_END;
}

// norm normalises one group of columns of a row; 64 items share it. With a residual, in is
// added to it first: every item goes on with the columns that it added. The mean is
// rounded to the size of the numbers; what is left of it is summed with the squares.
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void norm(__global const float *in, __global float *out, int stride, int first, int width, int layer, float eps,
	__global const float *weights, long weight, float offset, __global const float *biases, long bias,
	__global float *residual, int hasResidual COUNTER)
{
	COUNT_BEGIN(0)
	__local float parts[64];
	const int i = get_local_id(0);
	const long at = (long)get_global_id(2) * stride + first + (long)get_global_id(1) * width;
	__global const float *x = hasResidual ? residual : in;
	float mean = 0.0f, rest = 0.0f, square = 0.0f;
	if (hasResidual)
		for (int c = i; c < width; c += 64)
			STORE(residual, at + c, LOAD(residual, at + c) + LOAD(in, at + c));
	if (layer) {
		for (int c = i; c < width; c += 64)
			mean += LOAD(x, at + c);
		mean = total(mean, parts) / (float)width;
	}
	for (int c = i; c < width; c += 64) {
		const float v = LOAD(x, at + c) - mean;
		rest += v;
		square = fma(v, v, square);
	}
	float variance = total(square, parts) / (float)width;
	rest = layer ? total(rest, parts) / (float)width : 0.0f;
	if (layer)
		variance = fmax(variance - rest * rest, 0.0f);
	const float scale = 1.0f / sqrt(variance + eps);
	for (int c = i; c < width; c += 64) {
		float y = (LOAD(x, at + c) - mean - rest) * scale;
		if (weight >= 0)
			y *= LOAD(weights, weight + c) + offset;
		if (bias >= 0)
			y += LOAD(biases, bias + c);
		STORE(out, at + c, y);
	}
	COUNT_END;
}

// rope turns one pair of one head. Its angle is position · frequency; turns is
// frequency / 2π in two floats, so that only the fraction of a turn is left
// before sine and cosine are taken: a float has no room for 100 000 radians. Behind the
// turns stands the axis of each pair, where there are several.
__kernel void rope(__global float *x, int stride, int first, int headDim, int start, int rotary, int interleaved,
	__global const float *turns, __global const int *step, int positions, int axes, float scale COUNTER)
{
	COUNT_BEGIN(0)
	const int f = get_global_id(0), h = get_global_id(1), row = get_global_id(2);
	const float p = (float)(axes < 0 ? step[positions + row] : step[axes + 3 * row + (int)LOAD(turns, rotary + f)]);
	const float high = LOAD(turns, 2 * f), low = LOAD(turns, 2 * f + 1);
	const float t = p * high, rest = fma(p, high, -t);
	const float angle = 2.0f * ((t - rint(t)) + fma(p, low, rest));
	const float c = cospi(angle) * scale, s = sinpi(angle) * scale;
	__global float *head = x + (long)row * stride + first + h * headDim + start;
	const int a = interleaved ? 2 * f : f, b = interleaved ? 2 * f + 1 : f + rotary / 2;
	const float u = LOAD(head, a), v = LOAD(head, b);
	STORE(head, a, u * c - v * s);
	STORE(head, b, v * c + u * s);
	COUNT_END;
}

__kernel void activate(__global const float *in, int kind, int up, float limit, __global float *out COUNTER) {
	COUNT_BEGIN(0)
	const int c = get_global_id(0), width = get_global_size(0);
	const long row = get_global_id(1);
	if (up)
		STORE(out, row * width + c, gated(kind, LOAD(in, row * 2 * width + c), LOAD(in, row * 2 * width + width + c), limit));
	else
		STORE(out, row * width + c, activation(kind, LOAD(in, row * width + c)));
	COUNT_END;
}

__kernel void scale_rows(__global const float *in, __global const float *gate, int gateWidth, __global const float *add, int hasAdd,
	int kind, float factor, __global float *out COUNTER)
{
	COUNT_BEGIN(0)
	const int c = get_global_id(0), width = get_global_size(0);
	const long row = get_global_id(1);
	float y = LOAD(in, row * width + c) * factor;
	if (gateWidth)
		y *= activation(kind, LOAD(gate, row * gateWidth + c % gateWidth));
	if (hasAdd)
		y += LOAD(add, row * width + c);
	STORE(out, row * width + c, y);
	COUNT_END;
}

__kernel void columns(__global const float *in, int inWidth, int first, __global float *out COUNTER) {
	COUNT_BEGIN(0)
	const int c = get_global_id(0), width = get_global_size(0);
	const long row = get_global_id(1);
	STORE(out, row * width + c, LOAD(in, row * inWidth + first + c));
	COUNT_END;
}

// place puts rows of media where tokens stand for them, or adds them.
__kernel void place(__global float *x, __global const int *step, int mediaRow, int media, int mediaWidth, int first, int add COUNTER) {
	COUNT_BEGIN(0)
	const int c = get_global_id(0), width = get_global_size(0), row = get_global_id(1);
	const int from = step[mediaRow + row];
	if (from >= 0) {
		const float v = as_float(LOAD(step, media + (long)from * mediaWidth + first + c));
		const long at = (long)row * width + c;
		STORE(x, at, add ? LOAD(x, at) + v : v);
	}
	COUNT_END;
}

__kernel void pick(__global const float *in, __global const int *step, int rows, __global float *out COUNTER) {
	COUNT_BEGIN(0)
	const int c = get_global_id(0), width = get_global_size(0);
	const long row = get_global_id(1);
	STORE(out, row * width + c, LOAD(in, (long)step[rows + row] * width + c));
	COUNT_END;
}

// pool reduces the rows of a sequence to one: kind 0 first, 1 mean, 2 last.
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void pool(__global const float *in, int width, int kind, int normalise, __global const int *step, int firsts, int counts, __global float *out COUNTER) {
	COUNT_BEGIN(0)
	__local float parts[64];
	const int i = get_local_id(0), seq = get_global_id(1);
	int from = step[firsts + seq], to = from + step[counts + seq] - 1;
	if (kind == 0)
		to = from;
	if (kind == 2)
		from = to;
	float square = 0.0f;
	for (int c = i; c < width; c += 64) {
		float sum = 0.0f;
		for (int row = from; row <= to; row++)
			sum += LOAD(in, (long)row * width + c);
		sum /= (float)(to - from + 1);
		square = fma(sum, sum, square);
		STORE(out, (long)seq * width + c, sum);
	}
	square = total(square, parts);
	if (normalise && square > 0.0f)
		for (int c = i; c < width; c += 64)
			STORE(out, (long)seq * width + c, LOAD(out, (long)seq * width + c) / sqrt(square));
	COUNT_END;
}

__kernel void soft_cap(__global float *x, float cap COUNTER) {
	COUNT_BEGIN(0)
	const long i = get_global_id(0);
	STORE(x, i, cap * tanh(LOAD(x, i) / cap));
	COUNT_END;
}

// What a linear reads of its activations.

// pack_bf16 rounds rows of x to bf16, two a dword; what is beyond K is zero.
__kernel void pack_bf16(__global const float *x, int width, int k, __global uint *out, int stride COUNTER) {
	COUNT_BEGIN(0)
	const int d = get_global_id(0), row = get_global_id(1);
	__global const float *in = x + (long)row * width;
	uint low = 2 * d < k ? operand_bf16(LOAD(in, 2 * d)) : 0u;
	uint high = 2 * d + 1 < k ? operand_bf16(LOAD(in, 2 * d + 1)) : 0u;
	STORE(out, (long)row * stride + d, low | (high << 16));
	COUNT_END;
}

// quantise rounds each group of 128 columns of x to int8 with one scale, to
// nearest even, and adds up what it rounded to. order, if there is one, says
// which column of x stands where.
__kernel void quantise(__global const float *x, int width, int k, __global const uint *arena, long order,
	__global char *q, __global float *scales, __global int *sums COUNTER)
{
	COUNT_BEGIN(0)
	const int g = get_global_id(0), row = get_global_id(1), groups = get_global_size(0), rows = get_global_size(1);
	__global const float *in = x + (long)row * width;
	__global char *to = q + ((long)row * groups + g) * 128;
	uint most = 0u; // magnitudes order as their bits do, NaN above all
	for (int i = g * 128; i < min(g * 128 + 128, k); i++)
		most = max(most, as_uint(LOAD(in, order < 0 ? i : (int)LOAD(arena, order + i))) & 0x7fffffffu);
	const int at = g * rows + row; // side by side for the rows of a tile
	float inverse = 0.0f;
	if (as_float(most) < 1e-30f)
		STORE(scales, at, 0.0f);
	else if (most >= 0x7f800000u)
		STORE(scales, at, NaN);
	else {
		STORE(scales, at, as_float(most) / 127.0f);
		inverse = 127.0f / as_float(most);
	}
	int sum = 0;
	for (int i = 0; i < 128; i++) {
		int c = g * 128 + i, v = 0;
		if (inverse != 0.0f && c < k)
			v = (int)rint(LOAD(in, order < 0 ? c : (int)LOAD(arena, order + c)) * inverse);
		STORE(to, i, (char)v);
		sum += v;
	}
	STORE(sums, at, sum);
	COUNT_END;
}

// The gated delta rule. A layer's state of a sequence is (taps-1, channels) of the
// past and (valueHeads, keyDim, valueDim) of memory, float32.

// begin clears the state of a sequence that starts in this step.
__kernel void delta_begin(__global float *state, int stateFloats, long layerBlocks, __global const int *step, int counts, int contexts, int tables COUNTER) {
	COUNT_BEGIN(0)
	const int i = get_global_id(0), seq = get_global_id(1);
	if (step[counts + seq] == step[contexts + seq])
		STORE(state, (layerBlocks + step[step[tables + seq]]) * stateFloats + i, 0.0f);
	COUNT_END;
}

// convolve is SiLU of the convolution that ends at each row.
__kernel void delta_convolve(__global const float *x, int stride, int channels, int taps, __global const uint *arena, long conv,
	__global const float *state, int stateFloats, long layerBlocks,
	__global const int *step, int seqs, int firsts, int tables, __global float *out COUNTER)
{
	COUNT_BEGIN(0)
	const int c = get_global_id(0), row = get_global_id(1);
	const int seq = step[seqs + row], i = row - step[firsts + seq];
	__global const float *past = state + (layerBlocks + step[step[tables + seq]]) * stateFloats;
	float y = 0.0f;
	for (int t = 0; t < taps; t++) {
		const int back = i - (taps - 1) + t;
		const float v = back < 0 ? LOAD(past, (long)(back + taps - 1) * channels + c) : LOAD(x, (long)(row - i + back) * stride + c);
		y = fma(v, as_float(LOAD(arena, conv + (long)(c / TILE) * taps * TILE + t * TILE + c % TILE)), y);
	}
	STORE(out, (long)row * channels + c, activation(SILU, y));
	COUNT_END;
}

// shift moves the last rows of each sequence into the past.
__kernel void delta_shift(__global const float *x, int stride, int channels, int taps, __global float *state, int stateFloats, long layerBlocks,
	__global const int *step, int firsts, int counts, int tables COUNTER)
{
	COUNT_BEGIN(0)
	const int c = get_global_id(0), seq = get_global_id(1);
	const int count = step[counts + seq], first = step[firsts + seq];
	__global float *past = state + (layerBlocks + step[step[tables + seq]]) * stateFloats;
	for (int t = 0; t < taps - 1; t++) { // ascending: what is read lies ahead of what is written
		const int row = count - (taps - 1) + t;
		STORE(past, (long)t * channels + c, row < 0 ? LOAD(past, (long)(row + taps - 1) * channels + c) : LOAD(x, (long)(first + row) * stride + c));
	}
	COUNT_END;
}

// delta runs one column of one value head over the rows of one sequence.
__kernel void delta(__global const float *x, int channels, __global const float *gates, int gateStride,
	int keyHeads, int valueHeads, int keyDim, int valueDim, int taps, __global const float *aLogs, long aLog, __global const float *dtBiases, long dtBias,
	__global float *state, int stateFloats, long layerBlocks, __global const int *step, int firsts, int counts, int tables, __global float *out COUNTER)
{
	COUNT_BEGIN(get_global_id(0))
	const int j = get_global_id(0), h = get_global_id(1), seq = get_global_id(2);
	const int keyHead = h / (valueHeads / keyHeads), width = keyHeads * keyDim;
	__global float *s = state + (layerBlocks + step[step[tables + seq]]) * stateFloats + (taps - 1) * channels + (long)h * keyDim * valueDim + j;
	const float root = 1.0f / sqrt((float)keyDim), decay = -exp(aLogs[aLog + h]);
	for (int n = 0; n < step[counts + seq]; n++) {
		const long row = step[firsts + seq] + n;
		__global const float *q = x + row * channels + keyHead * keyDim, *k = q + width, *v = x + row * channels + 2 * width + h * valueDim;
		float qq = 1e-6f, kk = 1e-6f;
		for (int i = 0; i < keyDim; i++) {
			const float a = LOAD_SAME(q, i), b = LOAD_SAME(k, i);
			qq = fma(a, a, qq);
			kk = fma(b, b, kk);
		}
		qq = root / sqrt(qq);
		kk = 1.0f / sqrt(kk);
		const float beta = sigmoid(LOAD_SAME(gates, row * gateStride + h));
		const float a = LOAD_SAME(gates, row * gateStride + valueHeads + h) + LOAD_SAME(dtBiases, dtBias + h);
		const float g = exp(decay * (a > 20.0f ? a : log1p(exp(a))));
		float read = 0.0f, y = 0.0f;
		for (int i = 0; i < keyDim; i++)
			read = fma(g * LOAD(s, (long)i * valueDim), k[i] * kk, read);
		const float learn = beta * (LOAD(v, j) - read);
		for (int i = 0; i < keyDim; i++) {
			const float m = fma(k[i] * kk, learn, g * LOAD(s, (long)i * valueDim));
			STORE(s, (long)i * valueDim, m);
			y = fma(m, q[i] * qq, y);
		}
		STORE(out, row * valueHeads * valueDim + (long)h * valueDim + j, y);
	}
	COUNT_END;
}

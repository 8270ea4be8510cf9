// Mixture of experts: which experts a row goes to, and what becomes of their
// answers. The experts themselves are linears over slots: slot row · top + c is
// the c-th choice of a row.

// greatest finds the best of n scores that is not taken, ties to the lower.
inline int greatest(__global const float *x, int n) {
	int best = 0;
	for (int i = 1; i < n; i++)
		if (x[i] > x[best])
			best = i;
	return best;
}

// route chooses for one row. scores (rows, experts) holds the router's products and
// is overwritten; choice (rows, experts) is room to work in.
__kernel void route(__global float *scores, __global float *choice, int experts, int top, int sigmoids, int topFirst, int normalise,
	float scale, int groups, int topGroups, __global const float *biases, long bias, __global const float *adds, long routerAdd,
	__global int *which, __global float *weights COUNTER)
{
	COUNT_BEGIN(0)
	const int row = get_global_id(0);
	__global float *s = scores + (long)row * experts, *c = choice + (long)row * experts;
	float most = -INFINITY, sum = 0.0f;
	for (int i = 0; i < experts; i++) {
		if (routerAdd >= 0)
			s[i] += LOAD(adds, routerAdd + i);
		most = fmax(most, LOAD(s, i));
	}
	if (sigmoids)
		for (int i = 0; i < experts; i++)
			s[i] = sigmoid(s[i]);
	else if (!topFirst) {
		for (int i = 0; i < experts; i++)
			sum += s[i] = exp(s[i] - most);
		for (int i = 0; i < experts; i++)
			s[i] /= sum;
	}
	for (int i = 0; i < experts; i++)
		STORE(c, i, s[i] + (bias >= 0 ? LOAD(biases, bias + i) : 0.0f));
	if (groups > 1) { // all but the best groups are out
		const int size = experts / groups;
		ulong keep = 0ul;
		for (int n = 0; n < topGroups; n++) {
			int best = -1;
			float bestScore = 0.0f;
			for (int g = 0; g < groups; g++) {
				const int first = greatest(c + g * size, size);
				float score = c[g * size + first];
				if (bias >= 0 && size > 1) {
					float second = -INFINITY;
					for (int i = 0; i < size; i++)
						if (i != first)
							second = fmax(second, c[g * size + i]);
					score += second;
				}
				if (!(keep >> g & 1ul) && (best < 0 || score > bestScore)) {
					best = g;
					bestScore = score;
				}
			}
			keep |= 1ul << best;
		}
		for (int i = 0; i < experts; i++)
			if (!(keep >> (i / size) & 1ul))
				c[i] = -INFINITY;
	}
	__global int *ids = which + row * top;
	__global float *w = weights + row * top;
	for (int n = 0; n < top; n++) {
		STORE(ids, n, greatest(c, experts));
		STORE(w, n, s[ids[n]]);
		c[ids[n]] = -INFINITY;
	}
	if (topFirst && !sigmoids) {
		most = w[0];
		for (int n = 1; n < top; n++)
			most = fmax(most, w[n]);
		sum = 0.0f;
		for (int n = 0; n < top; n++)
			sum += w[n] = exp(w[n] - most);
		for (int n = 0; n < top; n++)
			w[n] /= sum;
	}
	if (normalise) {
		sum = 0.0f;
		for (int n = 0; n < top; n++)
			sum += w[n];
		scale /= sum + 1e-20f;
	}
	for (int n = 0; n < top; n++)
		w[n] *= scale;
	COUNT_END;
}

// combine adds up the answers of a row's experts, in the order of the choice.
__kernel void combine(__global const float *answers, __global const float *weights, int top, __global const float *add, int hasAdd, __global float *out COUNTER) {
	COUNT_BEGIN(get_global_id(0))
	const int c = get_global_id(0), width = get_global_size(0);
	const long row = get_global_id(1);
	float sum = 0.0f;
	for (int n = 0; n < top; n++)
		sum = fma(LOAD_SAME(weights, row * top + n), LOAD(answers, (row * top + n) * width + c), sum);
	if (hasAdd)
		sum += LOAD(add, row * width + c);
	STORE(out, row * width + c, sum);
	COUNT_END;
}

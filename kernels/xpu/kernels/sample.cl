// Candidates of rows of logits. A job is eight words of asked: row, where its mask of
// allowed tokens begins in asked (-1: none), how many candidates it wants, the inverse
// of its temperature, where its answer begins in found, and its random number (below
// zero: it draws nothing). Each row is cut into chunks of 256 tokens.

#define CHUNK 256
#define JOB 8
#define NOBODY 0x7fffffff

// before says whether candidate (a, i) stands before (b, j): the greater logit first,
// ties to the lower token.
inline int before(float a, int i, float b, int j) { return a > b || (a == b && i < j); }

inline int allowed(__global const int *asked, int mask, int token) {
	return mask < 0 || ((uint)asked[mask + token / 32] >> (token % 32) & 1u);
}

// first_of leaves the first candidate of 64 items in values[0] and tokens[0].
inline void first_of(__local float *values, __local int *tokens) {
	const int i = get_local_id(0);
	barrier(CLK_LOCAL_MEM_FENCE);
	for (int reach = 32; reach > 0; reach /= 2) {
		if (i < reach && before(values[i + reach], tokens[i + reach], values[i], tokens[i])) {
			values[i] = values[i + reach];
			tokens[i] = tokens[i + reach];
		}
		barrier(CLK_LOCAL_MEM_FENCE);
	}
}

// survey describes one chunk of one job: its first candidate, and the sums of
// exponents relative to it, at temperature 1 and at the job's.
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void survey(__global const float *logits, int vocab, __global const int *asked, __global int *chunks COUNTER) {
	COUNT_BEGIN(0)
	__local float values[64];
	__local int tokens[64];
	__local float parts[64];
	const int i = get_local_id(0), chunk = get_group_id(0), job = get_group_id(1);
	__global const int *a = asked + job * JOB;
	__global const float *x = logits + (long)a[0] * vocab;
	const float cooling = as_float(a[3]);
	float best = -INFINITY, own[CHUNK / 64];
	int token = NOBODY;
	UNROLL
	for (int k = 0; k < CHUNK / 64; k++) {
		const int c = chunk * CHUNK + k * 64 + i;
		const int may = c < vocab && allowed(asked, a[1], c);
		own[k] = may ? LOAD(x, c) : -INFINITY;
		if (may && before(own[k], c, best, token)) {
			best = own[k];
			token = c;
		}
	}
	values[i] = best;
	tokens[i] = token;
	first_of(values, tokens);
	const float most = values[0];
	const int first = tokens[0];
	float plain = 0.0f, cooled = 0.0f;
	UNROLL
	for (int k = 0; k < CHUNK / 64; k++)
		if (own[k] != -INFINITY) {
			plain += exp(own[k] - most);
			cooled += exp((own[k] - most) * cooling);
		}
	plain = total(plain, parts);
	cooled = total(cooled, parts);
	if (i == 0) {
		__global int *to = chunks + 4 * ((long)job * get_num_groups(0) + chunk);
		STORE(to, 0, as_int(most));
		STORE(to, 1, first);
		STORE(to, 2, as_int(plain));
		STORE(to, 3, as_int(cooled));
	}
	COUNT_END;
}

// extract takes a job's candidates from its chunks, the first one first. Its answer is
// the greatest logit, the two sums relative to it, and the chunk that a draw falls into;
// then pairs of a logit and a token. A job that draws gets its chunks' sums besides, and
// the logits of the chunk.
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void extract(__global const float *logits, int vocab, int count, __global const int *asked, __global int *chunks, __global int *found COUNTER) {
	COUNT_BEGIN(0)
	__local float values[64], mine[64];
	__local int tokens[64], owned[64];
	__local float parts[64];
	__local int drawn;
	const int i = get_local_id(0), job = get_group_id(1);
	__global const int *a = asked + job * JOB;
	__global const float *x = logits + (long)a[0] * vocab;
	__global int *c = chunks + 4 * (long)job * count;
	__global int *out = found + a[4];
	const int mask = a[1], wanted = a[2];
	const float cooling = as_float(a[3]), chance = as_float(a[5]);

	float best = -INFINITY;
	int token = NOBODY;
	for (int k = i; k < count; k += 64)
		if (before(as_float(LOAD(c, 4 * k)), LOAD(c, 4 * k + 1), best, token)) {
			best = as_float(c[4 * k]);
			token = c[4 * k + 1];
		}
	mine[i] = values[i] = best;
	owned[i] = tokens[i] = token;
	first_of(values, tokens);
	const float most = values[0];

	float plain = 0.0f, cooled = 0.0f;
	for (int k = i; k < count; k += 64) {
		const float m = as_float(LOAD(c, 4 * k));
		const float p = m == -INFINITY ? 0.0f : as_float(LOAD(c, 4 * k + 2)) * exp(m - most);
		const float q = m == -INFINITY ? 0.0f : as_float(LOAD(c, 4 * k + 3)) * exp((m - most) * cooling);
		STORE(c, 4 * k + 3, as_int(q));
		plain += p;
		cooled += q;
		if (chance >= 0.0f)
			STORE(out, 4 + 2 * wanted + k, as_int(q));
	}
	plain = total(plain, parts);
	cooled = total(cooled, parts);

	// The draw: 64 stretches of chunks, then the chunks of one.
	const int each = (count + 63) / 64;
	float stretch = 0.0f;
	barrier(CLK_GLOBAL_MEM_FENCE);
	for (int k = i * each; k < min((i + 1) * each, count); k++)
		stretch += as_float(LOAD(c, 4 * k + 3));
	parts[i] = stretch;
	barrier(CLK_LOCAL_MEM_FENCE);
	if (i == 0) {
		float left = chance * cooled;
		int s = 0;
		while (s < 63 && left >= parts[s]) {
			left -= parts[s];
			s++;
		}
		int k = min(s * each, count - 1);
		while (k < min((s + 1) * each, count) - 1 && left >= as_float(c[4 * k + 3])) {
			left -= as_float(c[4 * k + 3]);
			k++;
		}
		drawn = k;
		STORE(out, 0, as_int(most));
		STORE(out, 1, as_int(plain));
		STORE(out, 2, as_int(cooled));
		STORE(out, 3, k);
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	if (chance >= 0.0f)
		for (int k = i; k < CHUNK; k += 64)
			STORE(out, 4 + 2 * wanted + count + k, drawn * CHUNK + k < vocab ? as_int(LOAD(x, drawn * CHUNK + k)) : 0);

	for (int n = 0; n < wanted; n++) {
		values[i] = mine[i];
		tokens[i] = owned[i];
		first_of(values, tokens);
		const float value = values[0];
		const int taken = tokens[0];
		barrier(CLK_LOCAL_MEM_FENCE);
		if (i == 0) {
			STORE(out, 4 + 2 * n, as_int(value));
			STORE(out, 5 + 2 * n, taken);
		}
		// The next of that chunk, behind the one that was taken.
		best = -INFINITY;
		token = NOBODY;
		const int chunk = taken / CHUNK;
		for (int k = 0; k < CHUNK / 64; k++) {
			const int t = chunk * CHUNK + k * 64 + i;
			if (taken != NOBODY && t < vocab && allowed(asked, mask, t)) {
				const float v = LOAD(x, t);
				if (before(value, taken, v, t) && before(v, t, best, token)) {
					best = v;
					token = t;
				}
			}
		}
		values[i] = best;
		tokens[i] = token;
		first_of(values, tokens);
		if (taken != NOBODY && i == chunk % 64) {
			STORE(c, 4 * chunk, as_int(values[0]));
			STORE(c, 4 * chunk + 1, tokens[0]);
			best = -INFINITY;
			token = NOBODY;
			for (int k = i; k < count; k += 64)
				if (before(as_float(LOAD(c, 4 * k)), LOAD(c, 4 * k + 1), best, token)) {
					best = as_float(c[4 * k]);
					token = c[4 * k + 1];
				}
			mine[i] = best;
			owned[i] = token;
		}
		barrier(CLK_LOCAL_MEM_FENCE);
	}
	COUNT_END;
}

// gather answers with single logits: asked holds pairs of a row and a token.
__kernel void gather(__global const float *logits, int vocab, __global const int *asked, int pairs, __global int *found, int to COUNTER) {
	COUNT_BEGIN(0)
	const int i = get_global_id(0);
	STORE(found, to + i, as_int(LOAD(logits, (long)asked[pairs + 2 * i] * vocab + asked[pairs + 2 * i + 1])));
	COUNT_END;
}

// The matrix unit of a sub-group (DPAS), and the same arithmetic without one.
//
// dpas multiplies 8 rows by LANES columns along K: lane l holds column l of b, eight
// dwords of it along K, and one slice of each of the 8 rows of a: a dword where a
// sub-group has 8 lanes (Xe-HPG), half of one where it has 16 (Xe-HPC, Xe2). Without
// the unit, lanes exchange their slices through local memory, so that the layout
// itself runs in every test.
//
// A block read gives lane l element l of LANES that lie side by side, in one message; the
// longer ones go on behind them.
//
// With -DDPAS the built-ins are used. The wrong form compiles without them and is
// slow without a word: a test counts the opcodes.

#if LANES == 8
#define A int8
#define SLICE int
#else
#define A short8
#define SLICE short
#endif

#ifdef DPAS

#ifdef cl_intel_required_subgroup_size
#define SUBGROUP __attribute__((intel_reqd_sub_group_size(LANES)))
#else
#define SUBGROUP
#endif

int8 __attribute__((overloadable)) intel_sub_group_i8_i8_matrix_mad_k32(A a, int8 b, int8 acc);
float8 __attribute__((overloadable)) intel_sub_group_bf16_bf16_matrix_mad_k16(A a, int8 b, float8 acc);

uint __attribute__((overloadable)) intel_sub_group_block_read(const __global uint *p);
uint2 __attribute__((overloadable)) intel_sub_group_block_read2(const __global uint *p);
uint4 __attribute__((overloadable)) intel_sub_group_block_read4(const __global uint *p);
uint8 __attribute__((overloadable)) intel_sub_group_block_read8(const __global uint *p);
ushort __attribute__((overloadable)) intel_sub_group_block_read_us(const __global ushort *p);

// The p of a block read is the same in all lanes.
#define block1(p) intel_sub_group_block_read(p)
#define block2(p, to) vstore2(intel_sub_group_block_read2(p), 0, to)
#define block4(p, to) vstore4(intel_sub_group_block_read4(p), 0, to)
#define block8(p, to) vstore8(intel_sub_group_block_read8(p), 0, to)
#if LANES == 8
#define block_slice(p) as_int(intel_sub_group_block_read(p))
#else
#define block_slice(p) as_short(intel_sub_group_block_read_us((const __global ushort *)(p)))
#endif

#define dpas_i8(a, b, acc, shared) intel_sub_group_i8_i8_matrix_mad_k32(a, b, acc)
#define dpas_bf16(a, b, acc, shared) intel_sub_group_bf16_bf16_matrix_mad_k16(a, b, acc)
#define SHARED(name)
#define SHARED_OF(name, sub) 0
uint __attribute__((overloadable)) get_sub_group_id(void);
#define SLICE_ID ((int)get_sub_group_id()) // the compiler knows that it is the same in all lanes

#else

#define SUBGROUP
#define SLICE_ID (get_local_id(0) / LANES)
#define BLOCK_LANE (get_local_id(0) % LANES)
#define block1(p) LOAD(p, BLOCK_LANE)
#define block_n(p, to, n) for (int b_ = 0; b_ < (n); b_++) (to)[b_] = LOAD(p, b_ * LANES + BLOCK_LANE)
#define block2(p, to) block_n(p, to, 2)
#define block4(p, to) block_n(p, to, 4)
#define block8(p, to) block_n(p, to, 8)
#define block_slice(p) LOAD((const __global SLICE *)(p), BLOCK_LANE)
#define SHARED(name) __local SLICE name[(SPLIT > GROUP ? SPLIT : GROUP) * LANES * 8];
#define SHARED_OF(name, sub) (name + (sub) * LANES * 8)

// spread puts every lane's slices of a where the others see them.
inline void spread(A a, __local SLICE *shared) {
	const int lane = get_local_id(0) % LANES;
	SLICE mine[8];
	vstore8(a, 0, mine);
	barrier(CLK_LOCAL_MEM_FENCE);
	for (int i = 0; i < 8; i++)
		shared[lane * 8 + i] = mine[i];
	barrier(CLK_LOCAL_MEM_FENCE);
}

// row_dword is dword j of row i of a.
inline uint row_dword(const __local SLICE *shared, int i, int j) {
#if LANES == 8
	return as_uint(shared[j * 8 + i]);
#else
	return (uint)as_ushort(shared[2 * j * 8 + i]) | ((uint)as_ushort(shared[(2 * j + 1) * 8 + i]) << 16);
#endif
}

inline int8 dpas_i8(A a, int8 b, int8 acc, __local SLICE *shared) {
	int sums[8], w[8];
	vstore8(acc, 0, sums);
	vstore8(b, 0, w);
	spread(a, shared);
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 8; j++) {
			char4 x = as_char4(row_dword(shared, i, j)), y = as_char4(w[j]);
			sums[i] += (int)x.s0 * y.s0 + (int)x.s1 * y.s1 + (int)x.s2 * y.s2 + (int)x.s3 * y.s3;
		}
	return vload8(0, sums);
}

inline float8 dpas_bf16(A a, int8 b, float8 acc, __local SLICE *shared) {
	float sums[8];
	int w[8];
	vstore8(acc, 0, sums);
	vstore8(b, 0, w);
	spread(a, shared);
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 8; j++) {
			uint x = row_dword(shared, i, j), y = as_uint(w[j]);
			sums[i] = fma(from_bf16(x & 0xffffu), from_bf16(y & 0xffffu), sums[i]);
			sums[i] = fma(as_float(x & 0xffff0000u), as_float(y & 0xffff0000u), sums[i]);
		}
	return vload8(0, sums);
}

#endif

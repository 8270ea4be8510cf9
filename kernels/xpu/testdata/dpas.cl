// The matrix unit of Intel's GPUs in plain OpenCL C over sub-groups, for devices that
// have the one and not the other. A lane of 8 holds a dword of each row, a lane of 16
// half of one; the order of sums is that of sg.cl.

#define PRODUCTS(row_dword) \
	int sums[8], w[8]; \
	vstore8(acc, 0, sums); \
	vstore8(b, 0, w); \
	for (int i = 0; i < 8; i++) \
		for (int j = 0; j < 8; j++) { \
			const char4 x = as_char4(row_dword(i, j)), y = as_char4(w[j]); \
			sums[i] += (int)x.s0 * y.s0 + (int)x.s1 * y.s1 + (int)x.s2 * y.s2 + (int)x.s3 * y.s3; \
		} \
	return vload8(0, sums);

#define FLOATS(row_dword) \
	float sums[8]; \
	int w[8]; \
	vstore8(acc, 0, sums); \
	vstore8(b, 0, w); \
	for (int i = 0; i < 8; i++) \
		for (int j = 0; j < 8; j++) { \
			const uint x = row_dword(i, j), y = as_uint(w[j]); \
			sums[i] = fma(as_float(x << 16), as_float(y << 16), sums[i]); \
			sums[i] = fma(as_float(x & 0xffff0000u), as_float(y & 0xffff0000u), sums[i]); \
		} \
	return vload8(0, sums);

#define OF8(i, j) as_uint(intel_sub_group_shuffle(slices[i], (uint)(j)))
#define OF16(i, j) ((uint)as_ushort(intel_sub_group_shuffle(slices[i], (uint)(2 * (j)))) | (uint)as_ushort(intel_sub_group_shuffle(slices[i], (uint)(2 * (j) + 1))) << 16)

int8 __attribute__((overloadable)) intel_sub_group_i8_i8_matrix_mad_k32(int8 a, int8 b, int8 acc) {
	int slices[8];
	vstore8(a, 0, slices);
	PRODUCTS(OF8)
}

int8 __attribute__((overloadable)) intel_sub_group_i8_i8_matrix_mad_k32(short8 a, int8 b, int8 acc) {
	short slices[8];
	vstore8(a, 0, slices);
	PRODUCTS(OF16)
}

float8 __attribute__((overloadable)) intel_sub_group_bf16_bf16_matrix_mad_k16(int8 a, int8 b, float8 acc) {
	int slices[8];
	vstore8(a, 0, slices);
	FLOATS(OF8)
}

float8 __attribute__((overloadable)) intel_sub_group_bf16_bf16_matrix_mad_k16(short8 a, int8 b, float8 acc) {
	short slices[8];
	vstore8(a, 0, slices);
	FLOATS(OF16)
}

// A libOpenCL that shows the devices of another (OPENCL) as GPUs at PCI address
// 0000:18:00.0, and fails as the file FAULT says: "build", "memory" or "lost".
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef intptr_t call(intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t);

static call *of(const char *name) {
	static void *real;
	if (!real)
		real = dlopen(getenv("OPENCL"), RTLD_NOW | RTLD_LOCAL);
	return (call *)dlsym(real, name);
}

static int fails(const char *how) {
	char text[32] = "";
	FILE *f = fopen(getenv("FAULT"), "r");
	if (!f)
		return 0;
	if (!fgets(text, sizeof text, f))
		text[0] = 0;
	fclose(f);
	return strcmp(text, how) == 0;
}

#define PARAMETERS intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e, intptr_t f, intptr_t g, intptr_t h, intptr_t i, intptr_t j
#define REAL(name) of(name)(a, b, c, d, e, f, g, h, i, j)
#define FORWARD(name) intptr_t name(PARAMETERS) { return REAL(#name); }

// What a call does not take is passed on and not looked at.
FORWARD(clGetPlatformIDs)
FORWARD(clGetPlatformInfo)
FORWARD(clGetDeviceIDs)
FORWARD(clCreateContext)
FORWARD(clReleaseContext)
FORWARD(clCreateCommandQueue)
FORWARD(clReleaseCommandQueue)
FORWARD(clCreateProgramWithSource)
FORWARD(clCreateProgramWithBinary)
FORWARD(clGetProgramInfo)
FORWARD(clReleaseProgram)
FORWARD(clCreateKernel)
FORWARD(clSetKernelArg)
FORWARD(clReleaseKernel)
FORWARD(clReleaseMemObject)
FORWARD(clEnqueueWriteBuffer)
FORWARD(clEnqueueReadBuffer)
FORWARD(clEnqueueCopyBuffer)
FORWARD(clEnqueueFillBuffer)
FORWARD(clFlush)
FORWARD(clFinish)

static int32_t answer(const void *value, size_t length, size_t room, void *to, size_t *got) {
	if (got)
		*got = length;
	if (to && room >= length)
		memcpy(to, value, length);
	return to && room < length ? -30 : 0;
}

int32_t clGetDeviceInfo(intptr_t device, uint32_t what, size_t room, void *to, size_t *got) {
	call *real = of("clGetDeviceInfo");
	const uint64_t gpu = 4;
	const uint32_t place[4] = {0, 0x18, 0, 0};
	char text[8192] = "";
	switch (what) {
	case 0x1000:
		return answer(&gpu, sizeof gpu, room, to, got);
	case 0x102B:
		return answer("made-up GPU", sizeof "made-up GPU", room, to, got);
	case 0x410F:
		return answer(place, sizeof place, room, to, got);
	case 0x1030:
		real(device, what, sizeof text - 32, (intptr_t)text, 0, 0, 0, 0, 0, 0);
		strcat(text, " cl_khr_pci_bus_info");
		return answer(text, strlen(text) + 1, room, to, got);
	}
	return real(device, what, room, (intptr_t)to, (intptr_t)got, 0, 0, 0, 0, 0);
}

intptr_t clBuildProgram(PARAMETERS) { return fails("build") ? -11 : REAL("clBuildProgram"); }

int32_t clGetProgramBuildInfo(intptr_t program, intptr_t device, uint32_t what, size_t room, void *to, size_t *got) {
	if (fails("build"))
		return answer("an internal error of the compiler", sizeof "an internal error of the compiler", room, to, got);
	return of("clGetProgramBuildInfo")(program, device, what, room, (intptr_t)to, (intptr_t)got, 0, 0, 0, 0);
}

intptr_t clCreateBuffer(PARAMETERS) {
	if (!fails("memory"))
		return REAL("clCreateBuffer");
	*(int32_t *)e = -4;
	return 0;
}

intptr_t clEnqueueNDRangeKernel(PARAMETERS) { return fails("lost") ? -36 : REAL("clEnqueueNDRangeKernel"); }

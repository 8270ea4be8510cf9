package cl

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// ErrNoLibrary is returned by Load when no OpenCL library can be opened.
var ErrNoLibrary = errors.New("no OpenCL library (libOpenCL.so.1) can be opened; install the package ocl-icd-libopencl1 and the driver of your GPU, on Debian intel-opencl-icd")

// Library is an opened libOpenCL. Its functions have OpenCL's names and
// parameters; handles are uintptr, sizes uintptr, results cl_int.
type Library struct {
	getPlatformIDs       func(n uint32, ids *uintptr, count *uint32) int32
	getPlatformInfo      func(id uintptr, what uint32, size uintptr, out unsafe.Pointer, got *uintptr) int32
	getDeviceIDs         func(platform uintptr, kind uint64, n uint32, ids *uintptr, count *uint32) int32
	getDeviceInfo        func(id uintptr, what uint32, size uintptr, out unsafe.Pointer, got *uintptr) int32
	createContext        func(properties *uintptr, n uint32, devices *uintptr, notify, user uintptr, code *int32) uintptr
	releaseContext       func(context uintptr) int32
	createQueue          func(context, device uintptr, properties uint64, code *int32) uintptr
	releaseQueue         func(queue uintptr) int32
	createWithSource     func(context uintptr, n uint32, texts **byte, lengths *uintptr, code *int32) uintptr
	createWithIL         func(context uintptr, il unsafe.Pointer, length uintptr, code *int32) uintptr
	createWithBinary     func(context uintptr, n uint32, devices, lengths *uintptr, binaries **byte, status, code *int32) uintptr
	buildProgram         func(program uintptr, n uint32, devices *uintptr, options string, notify, user uintptr) int32
	getBuildInfo         func(program, device uintptr, what uint32, size uintptr, out unsafe.Pointer, got *uintptr) int32
	getProgramInfo       func(program uintptr, what uint32, size uintptr, out unsafe.Pointer, got *uintptr) int32
	releaseProgram       func(program uintptr) int32
	createKernel         func(program uintptr, name string, code *int32) uintptr
	setKernelArg         func(kernel uintptr, index uint32, size uintptr, value unsafe.Pointer) int32
	releaseKernel        func(kernel uintptr) int32
	createBuffer         func(context uintptr, flags uint64, size uintptr, host unsafe.Pointer, code *int32) uintptr
	releaseMemObject     func(buffer uintptr) int32
	enqueueWriteBuffer   func(queue, buffer uintptr, blocking uint32, offset, size uintptr, from unsafe.Pointer, n uint32, waits, event unsafe.Pointer) int32
	enqueueReadBuffer    func(queue, buffer uintptr, blocking uint32, offset, size uintptr, to unsafe.Pointer, n uint32, waits, event unsafe.Pointer) int32
	enqueueCopyBuffer    func(queue, from, to uintptr, fromOffset, toOffset, size uintptr, n uint32, waits, event unsafe.Pointer) int32
	enqueueFillBuffer    func(queue, buffer uintptr, pattern unsafe.Pointer, length, offset, size uintptr, n uint32, waits, event unsafe.Pointer) int32
	enqueueNDRangeKernel func(queue, kernel uintptr, dims uint32, offset, global, local *uintptr, n uint32, waits, event unsafe.Pointer) int32
	flush                func(queue uintptr) int32
	finish               func(queue uintptr) int32
}

// Load opens libOpenCL; an empty path means the system's.
func Load(path string) (*Library, error) {
	names := []string{path}
	if path == "" {
		names = []string{"libOpenCL.so.1", "libOpenCL.so"}
	}
	var handle uintptr
	var err error
	for _, n := range names {
		if handle, err = purego.Dlopen(n, purego.RTLD_NOW|purego.RTLD_GLOBAL); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrNoLibrary, err)
	}
	l := &Library{}
	for _, f := range l.functions() {
		address, err := purego.Dlsym(handle, f.name)
		if err != nil && f.optional {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the OpenCL library has no %s: it is older than OpenCL 1.2", f.name)
		}
		purego.RegisterFunc(f.to, address)
	}
	return l, nil
}

// function is one entry of the library and where it goes.
type function struct {
	name     string
	to       any
	optional bool // of OpenCL 2.1
}

func (l *Library) functions() []function {
	return []function{
		{"clGetPlatformIDs", &l.getPlatformIDs, false},
		{"clGetPlatformInfo", &l.getPlatformInfo, false},
		{"clGetDeviceIDs", &l.getDeviceIDs, false},
		{"clGetDeviceInfo", &l.getDeviceInfo, false},
		{"clCreateContext", &l.createContext, false},
		{"clReleaseContext", &l.releaseContext, false},
		{"clCreateCommandQueue", &l.createQueue, false},
		{"clReleaseCommandQueue", &l.releaseQueue, false},
		{"clCreateProgramWithSource", &l.createWithSource, false},
		{"clCreateProgramWithIL", &l.createWithIL, true},
		{"clCreateProgramWithBinary", &l.createWithBinary, false},
		{"clBuildProgram", &l.buildProgram, false},
		{"clGetProgramBuildInfo", &l.getBuildInfo, false},
		{"clGetProgramInfo", &l.getProgramInfo, false},
		{"clReleaseProgram", &l.releaseProgram, false},
		{"clCreateKernel", &l.createKernel, false},
		{"clSetKernelArg", &l.setKernelArg, false},
		{"clReleaseKernel", &l.releaseKernel, false},
		{"clCreateBuffer", &l.createBuffer, false},
		{"clReleaseMemObject", &l.releaseMemObject, false},
		{"clEnqueueWriteBuffer", &l.enqueueWriteBuffer, false},
		{"clEnqueueReadBuffer", &l.enqueueReadBuffer, false},
		{"clEnqueueCopyBuffer", &l.enqueueCopyBuffer, false},
		{"clEnqueueFillBuffer", &l.enqueueFillBuffer, false},
		{"clEnqueueNDRangeKernel", &l.enqueueNDRangeKernel, false},
		{"clFlush", &l.flush, false},
		{"clFinish", &l.finish, false},
	}
}

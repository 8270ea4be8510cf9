// Package xpu computes on a GPU through OpenCL. Its kernels are OpenCL C, written
// once; they run on Intel GPUs and, for tests, on any CPU through PoCL or Intel's own driver.
//
// # Memory
//
// Weights lie in arenas, buffers of the device that grow by doubling, in tiles of
// 16 output columns: the layout of the CPU backend, so that a lane is a column. A
// Program's values are buffers for the most rows that its limits allow. Pages keep
// keys as (head, dim, token) and values as (head, token, dim).
//
// # A step
//
// Compile makes a list of launches, each a kernel object whose arguments are set
// once; only numbers of rows change. Run writes all that changes from step to step in
// one upload, enqueues the launches on one in-order queue, and waits once, when
// it reads what was asked for: candidates for the tokens to choose from, which the device
// finds, and whole rows only where they are wanted or a draw needs one.
//
// # Building
//
// Kernels are built by module when the first of them is asked for: from the driver's own
// result of an earlier start, from SPIR-V (embedded after `make kernels`), or from source.
// Package native compiles them ahead of time for GPUs that are not there, and checks what
// comes out. With the tag intel, NewEmulated runs what ships for a GPU, as it is, on a device
// that has sub-groups and no matrix unit.
//
// # Order of sums
//
// It depends on the shape of a weight and on the tuning, never on the number of rows:
// a row gets the same bits in any batch. Integer linears have the reference's bits.
//
// # A new kernel
//
// It stands in kernels, reads blocks by sg.cl, and has UNROLL before loops over arrays of
// registers (PoCL 3.1 miscompiles them). Its file is named in files (or linears) of
// source.go, its launch in executable.go. A kernel for decoding uses LOAD and STORE, and
// is added to traffic.go and package measure. `make test-pocl`, `make kernels` (no private
// memory, no spills) and `make test-intel` try it; TestNativeCode looks for DPAS and block
// messages.
package xpu

// Package native compiles kernels ahead of time with Intel's offline compiler (ocloc) and
// reads what it made: which kernels keep registers in memory, which use the matrix unit,
// and what their loops ask memory for. Nothing of it is needed to compute; it is how
// kernels are held to real GPUs where there is none.
package native

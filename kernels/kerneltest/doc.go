// Package kerneltest holds every backend to the reference. Run checks each
// operation against package ref, at odd sizes and with masks, and that a row
// gets the same bits alone, in a batch, in chunks and wherever its pages lie.
// Equal checks that two backends give the same bits. Bench times operations
// and sets them beside a bare loop of the same run.
//
// # Tolerances
//
// A linear in float32 may differ from the reference by 5e-6 · Σ|a·b|; one with
// bf16 operands by one rounding of the result and 1e-5 · Σ|a·b|; an integer
// one not at all. Other operations: 2e-6 absolute and 1e-5 of the value, more
// where a test says so.
package kerneltest

// Package kernels is the contract between engine and machine: a Backend that
// holds weights and KV pages, compiles a model's Program once, and runs it
// once a step. The same interface serves host memory and device memory:
// Weight and KV are opaque handles, a Program only records, Run executes, and
// the host gets back the sampled rows alone.
//
// # Life of a step
//
// A model records its Program once, with a symbolic number of rows. The
// scheduler then fills a Step for each forward pass: the tokens of every
// sequence in it, one after the other (a ragged batch), their positions, the
// block tables, and how to sample the rows that are wanted. Whatever changes
// from step to step is in Step and nowhere else, so that a device takes it in
// one upload and the host waits once.
//
// # Same tokens in any company
//
// For every operation, a row of the result depends on that row's inputs
// alone, computed in an order of sums that is fixed by the shapes of the
// weights: never by the number of rows in the step, the number of threads or
// the instruction set. So a prompt gives the same tokens alone, in a
// batch of 64, chunked, preempted or from the prefix cache.
//
// # Rounding points
//
// The residual stream and all reductions are float32. A linear reads its
// activations in the type its weight's format names (bf16 for bf16 weights,
// int8 a row and group for int8 and int4, float32 for float32). Keys and
// values are rounded once, when they are written to their page, and always
// read from there, even by the step that wrote them.
//
// # A new operation
//
// It is defined in program.go, its shapes in check.go; ref has it in plain loops in
// float64, every rounding named; kerneltest gets odd sizes, tails, infinite values and a
// tolerance with its reason; cpu has it in plain Go, products as float32(a*b) before they
// are added, or Go may fuse them. If it is hot, it is described in cpu/gen, added to
// cpu's instruction set, and shows 10 % of a step.
package kernels

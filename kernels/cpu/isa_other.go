//go:build !amd64 || purego

package cpu

// isas are the kernels by instruction set that this machine can run, the best first.
func isas() []*isa { return []*isa{portable()} }

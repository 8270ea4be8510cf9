//go:build !amd64 || purego

package cpu

// instruction sets is the kernels that this machine can run, the best first.
func levels() []*level { return []*level{portable()} }

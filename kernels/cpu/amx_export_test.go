//go:build amd64 && !purego

package cpu

// UseAMX has a backend use the AMX kernels, whether the machine has them or not.
func (b *Backend) UseAMX() { b.isa = isaAMX() }

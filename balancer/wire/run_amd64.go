//go:build amd64 && !purego

package wire

import "golang.org/x/sys/cpu"

// runAVX2 is run over whole steps of 64 bytes: at most the last 63 are left to
// be looked at.
//
//go:noescape
func runAVX2(b []byte, bound byte) int

// run returns how many bytes at the beginning of b stand in a string as they
// are: neither quotes, backslashes nor control characters, and less than bound
// behind the space.
func run(b []byte, bound byte) int {
	if len(b) < 64 || !cpu.X86.HasAVX2 {
		return runGo(b, bound)
	}
	n := runAVX2(b, bound)
	if n < len(b)&^63 {
		return n
	}
	return n + runGo(b[n:], bound)
}

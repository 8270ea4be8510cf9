//go:build !amd64 || purego

package wire

// run returns how many bytes at the beginning of b stand in a string as they
// are: neither quotes, backslashes nor control characters, and less than bound
// behind the space.
func run(b []byte, bound byte) int { return runGo(b, bound) }

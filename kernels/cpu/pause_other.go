//go:build !amd64 || purego

package cpu

// pause is a moment between two looks at a shared variable.
func pause() {}

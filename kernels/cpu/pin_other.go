//go:build !linux

package cpu

// pin does nothing: threads are tied to processors on Linux alone.
func pin(int) {}

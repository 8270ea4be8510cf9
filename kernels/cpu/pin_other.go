//go:build !linux

package cpu

// pin does nothing: threads are tied to processors on Linux alone.
func pin(int) {}

type affinity struct{}

func affinityNow() affinity { return affinity{} }

func unpin(*affinity) {}

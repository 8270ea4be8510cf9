// Package profile takes profiles of a worker while it serves: where the processor's
// time, the heap and the waiting are, and each step's time by operation.
//
//	profile.go   Start and Stop, as vLLM's two routes call them
//	steps.go     the steps of a profile, summed by operation
//	trace.go     the same as a Chrome trace, which Perfetto opens
//	routes.go    the two routes
package profile

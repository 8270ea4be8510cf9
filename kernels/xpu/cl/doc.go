// Package cl calls OpenCL through dlopen, without cgo: the calls that the XPU
// backend needs and no more, with errors in words.
//
// Load opens libOpenCL; Devices lists what its drivers offer; Open makes a
// context and one in-order queue on one device. An Error carries the call and
// OpenCL's own name for what went wrong. Handles are not safe for use by several
// goroutines at once; the backend calls from one.
package cl

// Package num has the number formats of weights, activations and KV pages:
// how each is rounded to and read back, and how weights are quantised. Every
// backend takes its rounding from here, so that there is one definition.
//
// All rounding is to nearest, ties to even, unless a function says otherwise.
package num

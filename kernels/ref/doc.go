// Package ref is the backend that defines every operation: plain loops that
// sum in float64 over the values as they are stored. It is written to be read,
// not to be fast; the other backends are tested against it.
//
// Where numbers lose bits is part of the definition, and has a name here:
//
//   - result: every value between two operations is float32.
//   - operand: what a linear reads of its input, by the weight's format: bf16,
//     or int8 with a scale for each row and 128 columns, or float32 unchanged.
//   - page: keys and values, rounded once as they are written.
//   - An integer linear sums exactly in int32 over 128 columns, then scales and
//     adds in float32, unfused, in ascending order: its bits are defined.
package ref

// Package counting has the demonstration model count, and checks every byte of the
// streams that it answers with: what a test or a benchmark asks while workers come
// and go, to know that nothing was lost, refused, or mixed with another stream.
package counting

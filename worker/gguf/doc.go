// Package gguf reads the header of a GGUF file: its values and where its
// tensors lie. It decodes no tensor; package kernels/num does.
//
// # Trust
//
// A file is outside input. Every length and count is held to what is left of
// the file before anything is set aside for it, all sums and products are
// checked, and each error says where in the file it was found. Tensors must lie
// one behind the other as the format has it, without holes, overlaps or bytes
// that belong to none. Nothing in a file is executed.
//
// # What is read
//
// Versions 2 and 3, little-endian, in one file. Values are numbers, truth
// values, strings and lists of these; lists of lists are refused, since no
// model has them. What values mean is for packages model and tokenizer to say.
//
// A File keeps no reference to the bytes that Parse read it from.
package gguf

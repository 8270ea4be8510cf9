// Package weights reads the tensors of model files: safetensors, in one file
// or in shards under an index; or one GGUF file, whose header package gguf
// reads.
//
// # Trust
//
// A model file is outside input. A header is bounded before it is read, every
// offset and product of dimensions is checked before it is used, and the
// tensors of a file must cover its data exactly, without holes or overlaps.
// Nothing in a file is ever executed: pickled checkpoints (.bin, .pt, .pth,
// .ckpt) are refused by name. Names in an index may not leave the folder, and
// whatever is not a regular file (a FIFO, a device, a directory) is refused
// before it is opened. Symbolic links are followed, because the cache of
// Hugging Face is made of them; what they lead to must be a regular file.
//
// # Memory
//
// Open maps the files of a folder, so that weights are read from the page
// cache once, while a backend packs them. Data touches each page of a tensor
// under a guard first: a file that was cut short after it was opened gives an
// error instead of ending the process. OpenFS reads its files whole; it is
// for models that are built into a binary.
package weights

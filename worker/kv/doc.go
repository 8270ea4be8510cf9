// Package kv keeps account of the pages of the KV cache: which blocks are
// free, which sequence holds which, and which idle blocks still hold a prefix
// that a prompt could use again. It knows ids and groups only; the memory
// itself is a backend's.
//
// A Cache is pure: no goroutine, no lock, no clock, no I/O. One goroutine owns
// it (the engine's).
//
// # Life of a block
//
// A block is held by some number of tables (its references). While it has
// none it stands in its group's free list, oldest first; there it may still
// carry a hash, so that a prompt can take it back. Its hash is dropped only
// when the block is handed out for other tokens. Only full blocks whose
// tokens have all been computed get a hash, and a hashed block is never
// written to again, so sharing needs no copy.
//
// # Groups
//
// Layers that keep different things stand in different groups with block ids
// of their own: full attention (every block of the sequence is kept), a
// sliding window (blocks behind the window are given back and stand as -1 in
// the table), and recurrent state (one block a sequence, never shared).
package kv

// Package journal keeps what the supervisor intends, so that its successor
// goes on from the same place: one bbolt file, a bucket a kind of record, JSON
// under a checksum of its own. bbolt returns flipped bits without an error and
// panics on a file cut short; so every record carries a CRC32C, every access
// is guarded, and a file that cannot be trusted is set aside, kept for people,
// and begun anew: all that matters can be rebuilt from locks and labels.
//
// A file of a newer format is refused and never rewritten. The file's own lock
// keeps a second supervisor out.
package journal

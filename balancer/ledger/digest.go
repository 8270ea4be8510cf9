package ledger

import (
	"math/bits"
	"slices"
)

// ChunkBytes is how much of a canonical prompt the first digests stand for
// each. Behind the first 64 of them chunks are twice as long each time that the
// prompt is: what two prompts have in common is known to a thirty-second of its
// length, and 400 KB take 144 digests.
const ChunkBytes = 1024

const (
	evenChunks = 64 // at the beginning, of one length
	octave     = 32 // chunks of each length after them
	sizeBits   = 15 // of a digest
)

// Units returns how many times ChunkBytes the first n chunks of a prompt are.
func Units(n int) int {
	if n <= evenChunks {
		return n
	}
	doubled := min((n-evenChunks)/octave, sizeBits-1)
	return evenChunks<<doubled + (n-evenChunks-doubled*octave)*2<<doubled
}

// unitsOf returns how many times ChunkBytes one digest stands for. A digest says
// so in its last hexadecimal digit, the times that the length was doubled, to
// whoever meets it without its prompt: the bound of what a worker may have,
// other doors, workers.
func unitsOf(digest uint64) int { return 1 << (digest & sizeBits) }

// Digests appends the chained digests of a prompt's whole chunks to dst. Equal
// digests stand for equal prompts up to and with that chunk, under the salt.
func Digests(dst []uint64, salt uint64, prompt []byte) []uint64 {
	if units := len(prompt) / ChunkBytes; units > evenChunks {
		dst = slices.Grow(dst, evenChunks+octave*bits.Len(uint(units/evenChunks)))
	} else {
		dst = slices.Grow(dst, units)
	}
	for n := 0; ; n++ {
		units := Units(n+1) - Units(n)
		if len(prompt) < units*ChunkBytes {
			return dst
		}
		salt = hash(salt, prompt[:units*ChunkBytes])
		dst = append(dst, salt&^sizeBits|uint64(bits.TrailingZeros(uint(units))))
		prompt = prompt[units*ChunkBytes:]
	}
}

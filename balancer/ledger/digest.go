package ledger

import (
	"bytes"
	"encoding/binary"
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

// UnitsOf returns how many times ChunkBytes the digests stand for, as Units does
// of a prompt that has no items.
func UnitsOf(digests []uint64) (units int) {
	for _, d := range digests {
		units += unitsOf(d)
	}
	return units
}

// Digests appends the chained digests of a prompt's whole chunks to dst. Equal
// digests stand for equal prompts up to and with that chunk, under the salt.
func Digests(dst []uint64, salt uint64, prompt []byte) []uint64 {
	if units := len(prompt) / ChunkBytes; units > evenChunks {
		dst = slices.Grow(dst, evenChunks+octave*bits.Len(uint(units/evenChunks)))
	} else {
		dst = slices.Grow(dst, units)
	}
	c := digester{digests: dst, salt: salt}
	c.text(prompt)
	return c.digests
}

// Item is a picture or a sound that stands in a prompt as base64.
type Item struct {
	From, To int // in the prompt
	Tokens   int
}

// unitTokens are the tokens of ChunkBytes of text. What the digest of an item says
// must not be learned: the doors of a fleet are to make the same ones.
const unitTokens = 256

// doubled is how many times ChunkBytes an item is, as a power of two, the nearest.
func (it *Item) doubled() int {
	units := max(it.Tokens/unitTokens, 1)
	return min(bits.Len(uint(units+units/3))-1, sizeBits)
}

// Units returns how many times ChunkBytes the item is.
func (it *Item) Units() int { return 1 << it.doubled() }

// DigestsAround is Digests of a prompt with items, which count by their tokens and
// not by their bytes: each ends a chunk, whose digest stands for the item and the
// text before it. It appends to own a digest of each item alone, which it has
// wherever it stands, however its slashes are spelled.
func DigestsAround(dst, own []uint64, salt, ownSalt uint64, prompt []byte, items []Item) (digests, alone []uint64) {
	c := digester{digests: dst, salt: salt}
	at := 0
	for i := range items {
		it := &items[i]
		rest := c.text(prompt[at:it.From])
		var s stream
		s.begin(ownSalt)
		s.base64(prompt[it.From:it.To])
		id := s.end()
		own = append(own, id&^sizeBits)
		c.item(rest, id, it.Units())
		at = it.To
	}
	c.text(prompt[at:])
	return c.digests, own
}

// digester makes the digests of a prompt one after the other.
type digester struct {
	digests []uint64
	salt    uint64 // the hash of all so far
	units   int    // that digests stand for
}

// next is how many times ChunkBytes the next chunk of text is.
func (c *digester) next() int {
	return 1 << min(bits.Len(uint(c.units/evenChunks)), sizeBits)
}

func (c *digester) add(hash uint64, units int) {
	c.salt, c.units = hash, c.units+units
	c.digests = append(c.digests, hash&^sizeBits|uint64(bits.TrailingZeros(uint(units))))
}

// text takes whole chunks of text, and returns what is left.
func (c *digester) text(b []byte) []byte {
	for units := c.next(); len(b) >= units*ChunkBytes; units = c.next() {
		c.add(hash(c.salt, b[:units*ChunkBytes]), units)
		b = b[units*ChunkBytes:]
	}
	return b
}

// item takes an item by the hash of its data, and the text before it that is no
// whole chunk.
func (c *digester) item(before []byte, id uint64, units int) {
	var s stream
	s.begin(c.salt)
	s.write(before)
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], id)
	s.write(raw[:])
	c.add(s.end(), units)
}

// stream is the hash of bytes of any number that come in pieces.
type stream struct {
	lanes [8]uint64
	seed  uint64
	n     int // bytes
	rest  [ChunkBytes]byte
}

func (s *stream) begin(seed uint64) {
	s.lanes, s.seed, s.n = [8]uint64(hashKeys[8:16]), seed, 0
}

func (s *stream) write(b []byte) {
	if had := s.n % ChunkBytes; had > 0 {
		n := copy(s.rest[had:], b)
		s.n, b = s.n+n, b[n:]
		if had+n < ChunkBytes {
			return
		}
		accumulate(&s.lanes, &hashKeys, s.seed, s.rest[:])
	}
	whole := len(b) - len(b)%ChunkBytes
	accumulate(&s.lanes, &hashKeys, s.seed, b[:whole])
	copy(s.rest[:], b[whole:])
	s.n += len(b)
}

// base64 writes text whose slashes some spell with a backslash, which is left out.
func (s *stream) base64(b []byte) {
	for {
		at := bytes.Index(b, []byte(`\/`))
		if at < 0 {
			break
		}
		s.write(b[:at])
		b = b[at+1:]
	}
	s.write(b)
}

func (s *stream) end() uint64 {
	if had := s.n % ChunkBytes; had > 0 {
		clear(s.rest[had:])
		accumulate(&s.lanes, &hashKeys, s.seed, s.rest[:])
	}
	return finish(&s.lanes, s.seed, s.n)
}

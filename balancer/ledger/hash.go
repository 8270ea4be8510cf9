package ledger

import (
	"encoding/binary"
	"math/bits"
)

// The hash of a chunk goes the way of XXH3: eight lanes of 64 bits take 64 bytes
// a step, each the product of the halves of its word under a key, and the plain
// word of its neighbour, so that no word is lost where a half is zero. All doors
// of a fleet must agree on it; on AMD64 it is 30 instructions of AVX2.

// hashKeys are the keys: 16 steps begin at one each, and the last eight stir the
// lanes after every ChunkBytes. They are the first outputs of splitmix64 from 0.
var hashKeys = [24]uint64{
	0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f, 0xf88bb8a8724c81ec,
	0x1b39896a51a8749b, 0x53cb9f0c747ea2ea, 0x2c829abe1f4532e1, 0xc584133ac916ab3c,
	0x3ee5789041c98ac3, 0xf3b8488c368cb0a6, 0x657eecdd3cb13d09, 0xc2d326e0055bdef6,
	0x8621a03fe0bbdb7b, 0x8e1f7555983aa92f, 0xb54e0f1600cc4d19, 0x84bb3f97971d80ab,
	0x7d29825c75521255, 0xc3cf17102b7f7f86, 0x3466e9a083914f64, 0xd81a8d2b5a4485ac,
	0xdb01602b100b9ed7, 0xa9038a921825f10d, 0xedf5f1d90dca2f6a, 0x54496ad67bd2634c,
}

// hashPrime multiplies the lanes when they are stirred.
const hashPrime = 0x9e3779b1

// hash returns the hash of b, a multiple of ChunkBytes, under a seed.
func hash(seed uint64, b []byte) uint64 {
	lanes := [8]uint64(hashKeys[8:16])
	accumulate(&lanes, &hashKeys, seed, b)
	return finish(&lanes, seed, len(b))
}

// finish makes the hash of n bytes of what they have become in the lanes.
func finish(lanes *[8]uint64, seed uint64, n int) uint64 {
	h := seed ^ uint64(n)*hashPrime
	for i := 0; i < 8; i += 2 {
		high, low := bits.Mul64(lanes[i]^hashKeys[i], lanes[i+1]^hashKeys[i+1])
		h += high ^ low
	}
	h ^= h >> 37
	h *= 0x165667919e3779f9
	return h ^ h>>32
}

// accumulateGo is accumulate in plain Go.
func accumulateGo(lanes *[8]uint64, keys *[24]uint64, seed uint64, b []byte) {
	for ; len(b) >= ChunkBytes; b = b[ChunkBytes:] {
		for step := range 16 {
			p, k := (*[64]byte)(b[64*step:]), (*[8]uint64)(keys[step:])
			for i := 0; i < 8; i += 2 {
				v, w := binary.LittleEndian.Uint64(p[8*i:]), binary.LittleEndian.Uint64(p[8*i+8:])
				x, y := v^(k[i]+seed), w^(k[i+1]-seed)
				lanes[i] += x&0xffffffff*(x>>32) + w
				lanes[i+1] += y&0xffffffff*(y>>32) + v
			}
		}
		for i := range lanes {
			lanes[i] = (lanes[i] ^ lanes[i]>>47 ^ keys[16+i]) * hashPrime
		}
	}
}

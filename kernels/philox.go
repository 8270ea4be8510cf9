package kernels

import "math/bits"

// Philox is one block of Philox4x32-10 (Salmon et al., "Parallel Random
// Numbers: As Easy as 1, 2, 3", 2011): four random words from a counter and a
// key, with no state in between. So the number that a token is drawn with
// depends on its place alone, and a stream that goes on elsewhere draws the
// same tokens.
func Philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	const (
		mul0, mul1   = 0xD2511F53, 0xCD9E8D57
		weyl0, weyl1 = 0x9E3779B9, 0xBB67AE85
	)
	for range 10 {
		hi0, lo0 := bits.Mul32(mul0, counter[0])
		hi1, lo1 := bits.Mul32(mul1, counter[2])
		counter = [4]uint32{hi1 ^ counter[1] ^ key[0], lo1, hi0 ^ counter[3] ^ key[1], lo0}
		key[0] += weyl0
		key[1] += weyl1
	}
	return counter
}

// Uniform is the random number in [0, 1) of one output token, with 53 bits.
func (s *Sampling) Uniform() float64 {
	r := Philox([4]uint32{s.Position, s.Branch, 0, 0}, [2]uint32{uint32(s.Seed), uint32(s.Seed >> 32)})
	return float64((uint64(r[0])<<32|uint64(r[1]))>>11) / (1 << 53)
}

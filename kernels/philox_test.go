package kernels

import "testing"

// The vectors are the known answers that come with Random123.
func TestPhilox(t *testing.T) {
	f := func(counter [4]uint32, key [2]uint32, want [4]uint32) {
		t.Helper()
		if got := Philox(counter, key); got != want {
			t.Fatalf("got %08x; want %08x", got, want)
		}
	}
	const ones = 0xffffffff
	f([4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8})
	f([4]uint32{ones, ones, ones, ones}, [2]uint32{ones, ones}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd})
	f([4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
		[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1})
}

func TestUniform(t *testing.T) {
	var sum float64
	seen := map[float64]bool{}
	for i := range uint32(1000) {
		s := Sampling{Seed: 7, Position: i}
		u := s.Uniform()
		if u < 0 || u >= 1 || seen[u] {
			t.Fatalf("position %d: got %v", i, u)
		}
		seen[u] = true
		sum += u
	}
	if sum < 450 || sum > 550 {
		t.Fatalf("the mean of 1000 numbers is %v", sum/1000)
	}
	a, b := Sampling{Seed: 7, Branch: 1}, Sampling{Seed: 7 << 32}
	if a.Uniform() == b.Uniform() || seen[a.Uniform()] {
		t.Fatalf("seed, branch and position do not tell streams apart")
	}
}

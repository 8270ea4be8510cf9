//go:build amd64 && !purego

package ledger

import "golang.org/x/sys/cpu"

// accumulate takes b, a multiple of ChunkBytes, into the lanes of a hash.
func accumulate(lanes *[8]uint64, keys *[24]uint64, seed uint64, b []byte) {
	if !cpu.X86.HasAVX2 {
		accumulateGo(lanes, keys, seed, b)
		return
	}
	accumulateAVX2(lanes, keys, seed, b)
}

//go:noescape
func accumulateAVX2(lanes *[8]uint64, keys *[24]uint64, seed uint64, b []byte)

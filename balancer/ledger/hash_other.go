//go:build !amd64 || purego

package ledger

// accumulate takes b, a multiple of ChunkBytes, into the lanes of a hash.
func accumulate(lanes *[8]uint64, keys *[24]uint64, seed uint64, b []byte) {
	accumulateGo(lanes, keys, seed, b)
}

package surface

import (
	"encoding/hex"
	"math/rand/v2"
)

// RequestID takes a client's id where it is a plain one, else makes one.
func RequestID(given []byte) string {
	if s := string(given); ValidID(s) {
		return s
	}
	var b [16]byte
	for i := 0; i < 16; i += 8 {
		v := rand.Uint64()
		for j := range 8 {
			b[i+j] = byte(v >> (8 * j))
		}
	}
	return hex.EncodeToString(b[:])
}

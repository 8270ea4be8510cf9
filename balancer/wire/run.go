package wire

import "encoding/binary"

// The bounds of a run: ASCII alone, or any byte that is not ASCII as well.
const (
	ascii = 0x80 - 0x20
	wide  = 0x100 - 0x20
)

// runGo is run in plain Go, eight bytes a step.
func runGo(b []byte, bound byte) int {
	const ones, top = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		v := binary.LittleEndian.Uint64(b[i:])
		quote, slash := v^'"'*ones, v^'\\'*ones
		odd := (v - ' '*ones) &^ v // what else is marked stands behind a byte that is rightly so
		odd |= (quote - ones) &^ quote
		odd |= (slash - ones) &^ slash
		if bound == ascii {
			odd |= v
		}
		if odd&top != 0 {
			break
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c-' ' >= bound {
			break
		}
	}
	return i
}

package wire

import (
	"encoding/json"
	"fmt"
)

// Quote is s as a JSON string.
func Quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("BUG: %q cannot be encoded: %v", s, err))
	}
	return b
}

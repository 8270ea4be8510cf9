package resume

import (
	"strconv"

	"roundhouse/balancer/wire"
)

// Usage is what an answer says it took.
type Usage struct {
	Prompt, Cached, Generated int64 // Cached is -1 where the answer does not say it
	Known                     bool
}

// Read takes the token counts out of a usage object.
func (u *Usage) Read(b []byte) {
	number := func(name string) (n int64, ok bool) {
		v, ok := wire.Field(b, name)
		if !ok {
			return 0, false
		}
		n, err := strconv.ParseInt(string(v), 10, 53)
		return n, err == nil && n >= 0
	}
	prompt, ok := number(`"prompt_tokens"`)
	if !ok {
		if prompt, ok = number(`"input_tokens"`); !ok {
			return
		}
	}
	u.Known, u.Prompt = true, prompt
	if g, ok := number(`"completion_tokens"`); ok {
		u.Generated = g
	} else if g, ok := number(`"output_tokens"`); ok {
		u.Generated = g
	}
	u.Cached = -1
	if c, ok := number(`"cached_tokens"`); ok {
		u.Cached = c
	}
}

package server

// repetition says when an answer that goes in circles is to end: when its last
// tokens are one pattern min_count times over.
type repetition struct {
	MaxSize  int `json:"max_pattern_size"`
	MinSize  int `json:"min_pattern_size"`
	MinCount int `json:"min_count"`
}

// maxRepeated bounds how many tokens are looked at for one pattern.
const maxRepeated = 1 << 14

func (r *repetition) check() *apiError {
	switch {
	case r == nil:
	case r.MaxSize < 0 || r.MinSize < 0 || r.MinSize > r.MaxSize:
		return badValue("", "max_pattern_size, min_pattern_size must be >=0, with min_pattern_size <= max_pattern_size. Set both to 0 to disable repetitive pattern detection.")
	case r.MaxSize > 0 && r.MinCount < 2:
		return badValue("", "min_count must be >= 2 to detect repetitive patterns in engine output. If you do not wish to detect repetitive patterns, set max_pattern_size to 0.")
	case r.MaxSize > maxRepeated || r.MinCount > maxRepeated || r.MaxSize*r.MinCount > maxRepeated:
		return badValue("repetition_detection", "max_pattern_size times min_count may be at most %d", maxRepeated)
	}
	return nil
}

// in reports whether tokens end in a pattern that is repeated often enough.
func (r *repetition) in(tokens []int32) bool {
	if r == nil || r.MaxSize == 0 {
		return false
	}
	for size := max(1, r.MinSize); size <= r.MaxSize && size*r.MinCount <= len(tokens); size++ {
		if r.repeats(tokens, size) {
			return true
		}
	}
	return false
}

func (r *repetition) repeats(tokens []int32, size int) bool {
	tail := tokens[len(tokens)-size*r.MinCount:]
	for i := size; i < len(tail); i++ {
		if tail[i] != tail[i-size] {
			return false
		}
	}
	return true
}

// keep is how many of an answer's last tokens are looked at.
func (r *repetition) keep() int {
	if r == nil {
		return 0
	}
	return r.MaxSize * r.MinCount
}

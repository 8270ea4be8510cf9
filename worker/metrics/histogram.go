package metrics

import (
	"slices"
	"sort"
)

// Histogram counts observations by upper bound. Its owner guards it.
type Histogram struct {
	Bounds []float64 // ascending, without +Inf
	Counts []uint64  // of each bound and of +Inf last; not cumulative
	Sum    float64
}

// NewHistogram makes an empty histogram with the given upper bounds.
func NewHistogram(bounds []float64) *Histogram {
	return &Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

// Observe counts v.
func (h *Histogram) Observe(v float64) {
	h.Counts[sort.SearchFloat64s(h.Bounds, v)]++
	h.Sum += v
}

// Clone is a copy that its owner no longer touches.
func (h *Histogram) Clone() *Histogram {
	return &Histogram{Bounds: h.Bounds, Counts: slices.Clone(h.Counts), Sum: h.Sum}
}

package xpu

import "roundhouse/kernels"

// shape is a matrix as far as it decides what a linear moves.
type shape struct {
	format  kernels.Format
	out, in int
	group   int  // columns a scale of four-bit formats
	zeros   bool // four-bit codes have zero points
}

// stored is the bytes of a tile of 16 outputs and of its scales, as they lie in memory.
func (s shape) stored() (weights, scales int) {
	units := func(columns int) int { return (s.in + columns - 1) / columns }
	switch s.format {
	case kernels.FormatF32:
		return 64 * s.in, 0
	case kernels.FormatF16:
		return 64 * units(2), 0
	case kernels.FormatBF16:
		return 512 * units(16), 0
	case kernels.FormatInt8:
		return 2048 * units(128), 64
	case kernels.FormatFP8:
		return 2048 * units(128), 64 * units(128) // read again for each unit, from the cache
	case kernels.FormatMXFP4:
		return 256 * units(32), 16 * units(32)
	}
	scales = 64 * ((s.in + s.group - 1) / s.group)
	if s.zeros {
		scales *= 2
	}
	return 1024 * units(128), scales
}

// operands is the bytes of one row of activations, with its scales and sums.
func (s shape) operands() int {
	groups := (s.in + 127) / 128
	switch s.format {
	case kernels.FormatF32, kernels.FormatF16:
		return 4 * s.in
	case kernels.FormatBF16:
		return 32 * ((s.in + 15) / 16)
	case kernels.FormatFP8:
		return 256 * groups
	case kernels.FormatMXFP4:
		return 64 * (s.in / 32)
	case kernels.FormatInt8:
		return 128*groups + 4*groups
	}
	return 128*groups + 8*groups
}

// Traffic is what kernels ask memory for, caches included, and compute.
type Traffic struct {
	Weights int64 // bytes of weights and pages: each has to come from the device's memory
	Cached  int64 // bytes of activations and of what is asked for again: caches have them
	Flops   int64
}

func (t *Traffic) add(o Traffic, times int64) {
	t.Weights += times * o.Weights
	t.Cached += times * o.Cached
	t.Flops += times * o.Flops
}

// covers is the rows and tiles of 16 outputs that take the same weights and operands in a
// linear of so many rows.
func (t Tuning) covers(f kernels.Format, rows int) (together, wide int) {
	_, together, wide = t.group(f, rows > 1)
	if t.matrix(f) && rows > 1 {
		wide /= subGroups
	}
	return together, wide
}

// linearTraffic is that of rows of a linear whose sub-groups compute so many rows and
// tiles of 16 outputs at once.
func linearTraffic(s shape, rows, together, wide int) Traffic {
	weights, scales := s.stored()
	blocks := int64((rows + together - 1) / together)
	w := int64(tiles(s.out)) * int64(weights+scales)
	reads := int64((tiles(s.out) + wide - 1) / wide) // of each row of the operands
	return Traffic{
		Weights: w,
		Cached:  (blocks-1)*w + reads*blocks*int64(together)*int64(s.operands()) + 4*int64(rows)*int64(s.out),
		Flops:   2 * int64(rows) * int64(s.in) * int64(s.out),
	}
}

// attentionTraffic is that of rows of one sequence whose last row sees context tokens:
// pages once for every tile of rows, queries and answers once. stored is the bytes that a
// token's key takes in a head's pages, and its value as many.
func (t Tuning) attentionTraffic(heads, kvHeads, dim, stored, rows, context int) Traffic {
	shared := heads / kvHeads
	bands := int64((shared + t.Queries - 1) / t.Queries)
	var out Traffic
	for first := 0; first < rows; first += t.tileRows(shared) {
		last := min(first+t.tileRows(shared), rows)
		seen := int64(context - rows + last)
		pages := bands * seen * int64(kvHeads) * int64(2*stored)
		if first == 0 {
			out.Weights += pages
		} else {
			out.Cached += pages
		}
		out.Flops += 4 * int64(last-first) * seen * int64(heads*dim)
	}
	out.Cached += int64(rows) * int64(heads) * int64(8*dim)
	return out
}

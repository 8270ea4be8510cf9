package model

import (
	"math"

	"roundhouse/kernels/num"
)

// Places are a tower's positions that were learned: a square table, which is
// stretched over a picture's patches.
type Places struct {
	grid  grid
	side  int
	width int
	rows  []float32
}

// grid is a table of places, and how it is stretched.
type grid struct {
	Name  string // of the tensor
	Rows  int    // side · side
	Cubic bool   // between 4 rows an axis, instead of 2

	// Corners: the table's corners are those of the picture, instead of the corners
	// of their cells.
	Corners bool
}

// table checks a table, and reads it where weights are loaded.
func (t *tower) table(g *grid) {
	side := int(math.Sqrt(float64(g.Rows)))
	t.g.want(side*side == g.Rows && g.Rows >= 1 && g.Rows <= 1<<20, "vision_config: %d positions; want a square, of 1 to %d", g.Rows, 1<<20)
	tensor := t.g.find(whole(t.prefix+g.Name, g.Rows, t.width))
	if tensor == nil {
		return
	}
	t.places = &Places{grid: *g, side: side, width: t.width}
	if t.g.be == nil || t.g.err != nil {
		return
	}
	data, err := tensor.Data()
	if err == nil {
		err = allFinite(data, tensor, 0)
	}
	if err != nil {
		t.g.err = err
		return
	}
	t.places.rows = make([]float32, g.Rows*t.width)
	num.Decode(t.places.rows, storedType(tensor.Type), data, 0)
}

// bytes is the memory that the table takes.
func (p *Places) bytes() int64 {
	if p == nil {
		return 0
	}
	return 4 * int64(p.grid.Rows) * int64(p.width)
}

// Beside puts behind each row of features of a picture's patches, in the order of
// its layout, the table's row for its place. Without a table they stay as they are.
func (p *Places) Beside(features []float32, l *Layout, lines, line int) []float32 {
	if p == nil {
		return features
	}
	n := len(l.Axes) / 3
	each := len(features) / n
	out := make([]float32, 0, n*(each+p.width))
	down, along := p.taps(lines), p.taps(line)
	for i := range n {
		out = append(out, features[i*each:][:each]...)
		begin := len(out)
		out = out[:begin+p.width]
		sum := out[begin:]
		for _, y := range down[l.Axes[3*i]] {
			for _, x := range along[l.Axes[3*i+1]] {
				weight, row := y.weight*x.weight, p.rows[(y.at*p.side+x.at)*p.width:][:p.width]
				for c, v := range row {
					sum[c] += weight * v
				}
			}
		}
	}
	return out
}

// tap is a row or column of the table, and its share.
type tap struct {
	at     int
	weight float32
}

// taps are those of each of n places on an axis. What lies beyond the table is its
// edge.
func (p *Places) taps(n int) [][]tap {
	out := make([][]tap, n)
	for i := range out {
		at := (float32(i)+0.5)*float32(p.side)/float32(n) - 0.5
		if p.grid.Corners {
			at = float32(i) * float32(p.side-1) / float32(max(n-1, 1))
		}
		low := int(math.Floor(float64(at)))
		first, last := low, low+1
		if p.grid.Cubic {
			first, last = low-1, low+2
		}
		for k := first; k <= last; k++ {
			d := float32(math.Abs(float64(at - float32(k))))
			weight := max(1-d, 0)
			if p.grid.Cubic {
				weight = cubic(d)
			}
			out[i] = append(out[i], tap{at: max(0, min(k, p.side-1)), weight: weight})
		}
	}
	return out
}

// cubic is Keys' kernel with a = -3/4.
func cubic(d float32) float32 {
	const a = -0.75
	if d <= 1 {
		return ((a+2)*d-(a+3))*d*d + 1
	}
	return ((a*d-5*a)*d+8*a)*d - 4*a
}

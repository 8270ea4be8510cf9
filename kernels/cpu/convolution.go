package cpu

import (
	"errors"
	"fmt"

	"roundhouse/kernels"
)

// Rows of a convolution are taken piece by piece: what the window sees at each
// of so many places is gathered into a row, and those rows are multiplied as a
// linear multiplies its own, so many tiles at a time.
const (
	placeRows    = 48 // whole for the kernels of 2, 3, 4, 6, 8 and 16 rows
	placeStretch = 8
)

// convolution is a Convolution while it runs.
type convolution struct {
	*kernels.Convolution
	x        *executable
	w        *weight
	window   kernels.Window
	queue    *queue
	packing  packing
	groups   int
	channels int // of a group
	outputs  int // of a group
	own      int // buffer: each thread's gathered row, packed rows and results
	each     int // bytes of it
	bias     []float32
	halves   int // depthwise: buffer of In as operands; -1: In itself
	taps     []float32
}

// convolution adds the stages of a Convolution.
func (pl *plan) convolution(op *kernels.Convolution) {
	x, w := pl.x, op.Weight.(*weight)
	if w.kind != kindF32 && w.kind != kindF16 && w.kind != kindBF16 {
		pl.err = fmt.Errorf("a convolution as %v: %w; there are float32, float16 and bfloat16", w.format, errors.ErrUnsupported)
		return
	}
	c := &convolution{Convolution: op, x: x, w: w, window: op.Window.Full(), queue: &queue{}, groups: max(op.Groups, 1)}
	c.channels, c.outputs = x.p.Width(op.In)/c.groups, w.out/c.groups
	if op.Bias != nil {
		c.bias = op.Bias.(*weight).vector
	}
	x.costs[x.p.Values[op.Out].Rows] += 2 * float64(w.out) * float64(w.in)
	if c.channels == 1 && c.outputs == 1 {
		pl.depthwise(c)
		return
	}
	c.packing = packingOf(x.isa, w)
	c.each = 4*((w.in+15)&^15) + placeRows*(c.packing.stride+4*16*placeStretch)
	c.own = pl.buffer(x.threads * c.each)
	x.queues = append(x.queues, c.queue)
	pl.stage(stage{reads: operand(op.In), writes: append(operand(op.Out), c.own), run: c.run})
}

// run takes pieces of places, of groups, and of a group's outputs where there
// would be too few for the threads otherwise. Which of them are done together
// changes no bit.
func (c *convolution) run(thread int) {
	x := c.x
	count := x.counts[x.p.Values[c.Out].Rows]
	pieces := (count + placeRows - 1) / placeRows
	most := (c.outputs + 16*placeStretch - 1) / (16 * placeStretch)
	parts := min(most, (2*x.active+pieces*c.groups-1)/max(pieces*c.groups, 1))
	c.queue.take(pieces*c.groups*parts, 1, func(item, _ int) {
		first, group := item/(c.groups*parts)*placeRows, item/parts%c.groups
		from, to := part(c.outputs, item%parts, parts)
		c.piece(thread, first, min(first+placeRows, count), group, group*c.outputs+from, group*c.outputs+to)
	})
}

// piece computes outputs from to to of places first to last.
func (c *convolution) piece(thread, first, last, group, from, to int) {
	own := c.x.buffers[c.own].memory[thread*c.each:][:c.each]
	results, own := floats(own[:4*placeRows*16*placeStretch]), own[4*placeRows*16*placeStretch:]
	packed, row := own[:placeRows*c.packing.stride], floats(own[placeRows*c.packing.stride:])[:c.w.in]
	c.visit(first, last, func(r int, g kernels.Grid, y, x int) {
		c.gather(row, g, y, x, group)
		c.packing.pack(c.x.isa, packed[(r-first)*c.packing.stride:][:c.packing.stride], row, nil)
	})
	for tile := from / 16; 16*tile < to; tile += placeStretch {
		end := min(tile+placeStretch, (to+15)/16)
		p := product{w: c.w, packing: c.packing, in: packed, rows: last - first, out: results, stride: 16 * placeStretch, column: -16 * tile, scale: 1, bias: c.bias}
		p.run(c.x.isa, &c.x.scratch[thread], tile, end)
		low, high := max(from, 16*tile), min(to, 16*end) // tiles may hold outputs of two groups
		for r := range last - first {
			copy(c.x.row(c.Out, first+r)[low:high], results[r*16*placeStretch+low-16*tile:])
		}
	}
}

// visit calls f with places first to last: the grid of In that each is of, and
// where in the window's own it is.
func (c *convolution) visit(first, last int, f func(r int, g kernels.Grid, y, x int)) {
	rows := c.x.p.Values[c.In].Rows
	in := c.x.grids.Of(rows)
	for s, p := range c.x.grids.Places(rows, c.window) {
		for r := max(first, p.First); r < min(last, p.First+p.Rows()); r++ {
			f(r, in[s], (r-p.First)/p.Line, (r-p.First)%p.Line)
		}
	}
}

// gather puts the channels that a window sees side by side, tap by tap.
func (c *convolution) gather(row []float32, g kernels.Grid, y, x, group int) {
	w, width := &c.window, c.groups*c.channels
	in := c.x.values[c.In][g.First*width:]
	for i := range w.Kernel[0] {
		line := y*w.Stride[0] - w.Before[0] + i*w.Dilation[0]
		taps := row[i*w.Kernel[1]*c.channels:][:w.Kernel[1]*c.channels]
		if line < 0 || line >= g.Lines {
			clear(taps)
			continue
		}
		at := x*w.Stride[1] - w.Before[1]
		low, high := within1(at, w.Dilation[1], w.Kernel[1], g.Line)
		clear(taps[:low*c.channels])
		clear(taps[high*c.channels:])
		if w.Dilation[1] == 1 && c.groups == 1 && low < high {
			copy(taps[low*width:high*width], in[(line*g.Line+at+low)*width:])
			continue
		}
		for j := low; j < high; j++ {
			copy(taps[j*c.channels:][:c.channels], in[(line*g.Line+at+j*w.Dilation[1])*width+group*c.channels:])
		}
	}
}

// within1 is the taps, apart from each other, that lie within n rows where the
// first stands at at.
func within1(at, apart, taps, n int) (low, high int) {
	for low < taps && at+low*apart < 0 {
		low++
	}
	for high = taps; high > low && at+(high-1)*apart >= n; {
		high--
	}
	return low, high
}

// depthwise adds the stages of a convolution that has one channel and output a
// group: sixteen of them are a lane each, and taps are added in their order.
func (pl *plan) depthwise(c *convolution) {
	x, op := c.x, c.Convolution
	c.taps = make([]float32, c.w.out*c.w.in)
	for o := range c.w.out {
		for t := range c.w.in {
			c.taps[t*c.w.out+o] = c.w.at(o, t)
		}
	}
	c.halves = -1
	reads := operand(op.In)
	if c.w.kind == kindBF16 {
		rows := x.p.Values[op.In].Rows
		c.halves = pl.buffer(x.limit(rows) * c.w.out * 4)
		reads = []int{c.halves}
		pl.rowwise(rows, operand(op.In), reads, func(first, last int) {
			to := floats(x.buffers[c.halves].memory)
			x.isa.operands(to[first*c.w.out:last*c.w.out], x.values[op.In][first*c.w.out:last*c.w.out])
		})
	}
	pl.stage(stage{reads: reads, writes: operand(op.Out), run: func(thread int) {
		first, last := x.share(x.p.Values[op.Out].Rows, thread)
		c.visit(first, last, c.slide)
	}})
}

// slide is one row of a depthwise convolution.
func (c *convolution) slide(r int, g kernels.Grid, y, x int) {
	w, n := &c.window, c.w.out
	in := c.x.values[c.In]
	if c.halves >= 0 {
		in = floats(c.x.buffers[c.halves].memory)
	}
	in = in[g.First*n:]
	out := c.x.row(c.Out, r)
	clear(out)
	line, at := y*w.Stride[0]-w.Before[0], x*w.Stride[1]-w.Before[1]
	top, bottom := within1(line, w.Dilation[0], w.Kernel[0], g.Lines)
	left, right := within1(at, w.Dilation[1], w.Kernel[1], g.Line)
	switch {
	case top == bottom || left == right:
	case w.Kernel[1] == 1:
		c.x.isa.slide(out, in[((line+top*w.Dilation[0])*g.Line+at)*n:], c.taps[top*n:], bottom-top, w.Dilation[0]*g.Line*n)
	default:
		for i := top; i < bottom; i++ {
			c.x.isa.slide(out, in[((line+i*w.Dilation[0])*g.Line+at+left*w.Dilation[1])*n:], c.taps[(i*w.Kernel[1]+left)*n:], right-left, w.Dilation[1]*n)
		}
	}
	if c.bias != nil {
		c.x.isa.add(out, c.bias)
	}
}

// slide is y[k] += x[t·stride + k] · w[t·len(y) + k], tap by tap.
func slide(y, x, w []float32, taps, stride int) {
	for t := range taps {
		a, b := x[t*stride:][:len(y)], w[t*len(y):][:len(y)]
		for k := range y {
			y[k] += float32(a[k] * b[k])
		}
	}
}

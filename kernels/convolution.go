package kernels

import (
	"fmt"
	"slices"
)

// Features puts the step's own numbers into a value: a tower's sound or
// picture, (Frames, width), or its result so far, (Tokens, width). It
// reads Step.Features.
type Features struct{ Out Tensor }

// Convolution slides a window over the rows of each sequence, which form a
// grid: Seq.Line frames are a line, and 1 makes it one-dimensional. For output o
// of group g and the window at (y, x), with zeros outside of the grid:
//
//	out = Σ over taps (i, j) and channels c of g:  w[o][i][j][c] · in[y·Stride - Before + i·Dilation][…][c]  + bias[o]
//
// Out has a row for each place of the window, line by line: rows of the kind
// that Program.Over makes, or of Tokens where the tokens of the step stand
// for its features. Sequences never see each other. One whose rows are
// Tokens must be whole in its step, and its grid is one token wide.
//
// As many groups as channels and outputs is a depthwise convolution. Patches of
// an image are a window as large as its stride.
type Convolution struct {
	In, Out Tensor
	Weight  Weight // (out, taps · channels of a group), the channels of a tap side by side; FormatF32, FormatF16 or FormatBF16
	Bias    Weight // nil: none
	Window  Window
	Groups  int // of channels and outputs alike; 0 means 1
}

func (*Features) op()    {}
func (*Convolution) op() {}

// Window is how a convolution moves: first down the lines, then along a line.
type Window struct {
	Kernel   [2]int // taps; 0 means 1
	Stride   [2]int // from place to place; 0 means 1
	Dilation [2]int // from tap to tap; 0 means 1
	Before   [2]int // zeros before the grid, and
	After    [2]int // behind it
}

// Full is the window with its zeros filled in.
func (w Window) Full() Window {
	for i := range 2 {
		w.Kernel[i], w.Stride[i], w.Dilation[i] = max(w.Kernel[i], 1), max(w.Stride[i], 1), max(w.Dilation[i], 1)
	}
	return w
}

// Taps is the number of rows that a window looks at.
func (w Window) Taps() int { return max(w.Kernel[0], 1) * max(w.Kernel[1], 1) }

// padding is the zeros on both sides less those that keep the number of rows.
func (w Window) padding(axis int) int {
	return w.Before[axis] + w.After[axis] - w.Dilation[axis]*(w.Kernel[axis]-1)
}

// over is how many places a full window has on n rows; none where it is longer.
func (w Window) over(axis, n int) int {
	n += w.padding(axis) - 1
	if n < 0 {
		return 0
	}
	return n/w.Stride[axis] + 1
}

// keeps reports whether a full window has as many places as there are rows.
func (w Window) keeps() bool {
	return w.Stride == [2]int{1, 1} && w.padding(0) == 0 && w.padding(1) == 0
}

// check returns the fault of a window, nil if there is none. It may not make more
// rows than it is given, so that limits of a step hold for its results.
func (w Window) check() error {
	for i := range 2 {
		if w.Kernel[i] < 0 || w.Stride[i] < 0 || w.Dilation[i] < 0 || w.Before[i] < 0 || w.After[i] < 0 {
			return fmt.Errorf("a window %+v; nothing of it may be below 0", w)
		}
		if f := w.Full(); f.padding(i) > 0 {
			return fmt.Errorf("a window of %d taps, %d apart, with %d and %d zeros beside; at most %d would keep the number of rows",
				f.Kernel[i], f.Dilation[i], f.Before[i], f.After[i], f.Dilation[i]*(f.Kernel[i]-1))
		}
	}
	return nil
}

// Windowed is the rows that a window makes of rows of another kind.
type Windowed struct {
	Of     Rows
	Window Window // full
}

// Over is the kind of rows that a window makes of rows of a kind, the same for
// the same question. A window that keeps the number of rows keeps the kind.
func (p *Program) Over(of Rows, w Window) (made Rows) {
	made, p.Windowed = over(p.Windowed, of, w)
	return made
}

// over is Over among the kinds that there are, and those with it.
func over(all []Windowed, of Rows, w Window) (Rows, []Windowed) {
	w = w.Full()
	if w.keeps() {
		return of, all
	}
	i := slices.Index(all, Windowed{of, w})
	if i < 0 {
		i, all = len(all), append(slices.Clip(all), Windowed{of, w})
	}
	return Frames + 1 + Rows(i), all
}

// Kinds is the number of kinds of rows that a program has.
func (p *Program) Kinds() int { return int(Frames) + 1 + len(p.Windowed) }

// Base is the kind of rows from which windows make rows of a kind, the kind itself
// where none made it. There are at most as many rows as of the base.
func (p *Program) Base(kind Rows) Rows {
	for kind > Frames {
		kind = p.Windowed[kind-Frames-1].Of
	}
	return kind
}

// checkWindowed refuses rows made of anything but a grid.
func (p *Program) checkWindowed() error {
	for i, made := range p.Windowed {
		kind := Frames + 1 + Rows(i)
		if of := made.Of; of != Tokens && of < Frames || of >= kind {
			return fmt.Errorf("rows of kind %d are made of kind %d; want tokens, frames, or what was made before", kind, of)
		}
		if err := made.Window.check(); err != nil {
			return fmt.Errorf("rows of kind %d: %w", kind, err)
		}
	}
	for i, v := range p.Values {
		if int(v.Rows) >= p.Kinds() {
			return fmt.Errorf("value %d has rows of kind %d of %d", i, v.Rows, p.Kinds())
		}
	}
	return nil
}

func (c *checker) features(op *Features) {
	width := c.value(op.Out, "Out").Width
	for _, other := range c.p.Ops {
		if f, ok := other.(*Features); ok && c.err == nil && c.value(f.Out, "Out").Width != width {
			c.fail("features of %d and of %d columns in one program", width, c.p.Width(f.Out))
		} else if ok && c.err == nil && c.p.Values[f.Out].Rows != c.p.Values[op.Out].Rows {
			c.fail("features that are frames and tokens in one program")
		}
	}
	rows := Frames
	if c.value(op.Out, "Out").Rows == Tokens {
		rows = Tokens
	}
	c.writes(op.Out, "Out", rows, width)
}

func (c *checker) convolution(op *Convolution) {
	in, out := c.reads(op.In, "In", 1), c.value(op.Out, "Out")
	if err := op.Window.check(); err != nil {
		c.fail("%w", err)
	}
	if c.err != nil {
		return
	}
	groups := max(op.Groups, 1)
	if op.Groups < 0 || in.Width%groups != 0 || out.Width%groups != 0 {
		c.fail("%d channels and %d outputs in %d groups", in.Width, out.Width, op.Groups)
		return
	}
	w := op.Window.Full()
	switch {
	case in.Rows != Tokens && in.Rows < Frames:
		c.fail("In has rows of kind %d, which are no grid", in.Rows)
	case op.In == op.Out:
		c.fail("In and Out are the same value")
	case in.Rows == Tokens && (w.Kernel[1] != 1 || w.Stride[1] != 1 || w.Before[1] != 0 || w.After[1] != 0):
		c.fail("a window of two dimensions over tokens, which have one")
	}
	c.weight(op.Weight, "Weight", out.Width, op.Window.Taps()*(in.Width/groups), false)
	c.weight(op.Bias, "Bias", out.Width, 1, true)
	rows := out.Rows
	if rows != Tokens || c.p.Base(in.Rows) == Tokens {
		rows, _ = over(c.p.Windowed, in.Rows, w)
	}
	c.writes(op.Out, "Out", rows, out.Width)
}

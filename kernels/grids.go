package kernels

import "fmt"

// Grid is where rows of one sequence stand: from First on, line by line.
type Grid struct{ First, Lines, Line int }

// Rows is how many there are.
func (g Grid) Rows() int { return g.Lines * g.Line }

// Grids are the rows of a step that windows move over, by kind and sequence. A
// backend keeps one for each executable.
type Grids struct {
	width   int        // of features that are frames; 0: the program has none
	tokens  int        // of features that are tokens; 0: none
	windows bool       // the program has a convolution
	whole   bool       // one over tokens, so that sequences must be whole
	made    []Windowed // kinds beyond Frames: the program's, and those that are then tokens
	ends    []Rows     // the latter
	of      [][]Grid   // by kind
}

// NewGrids makes room for the steps of a program that was checked.
func NewGrids(p *Program) *Grids {
	g := &Grids{made: p.Windowed}
	for _, op := range p.Ops {
		switch op := op.(type) {
		case *Features:
			if p.Values[op.Out].Rows == Tokens {
				g.tokens = p.Width(op.Out)
			} else {
				g.width = p.Width(op.Out)
			}
		case *Convolution:
			in, out := p.Values[op.In].Rows, p.Values[op.Out].Rows
			g.windows = true
			g.whole = g.whole || p.Base(in) == Tokens
			var kind Rows
			if kind, g.made = over(g.made, in, op.Window); out == Tokens && in != Tokens {
				g.ends = append(g.ends, kind)
			}
		}
	}
	g.of = make([][]Grid, int(Frames)+1+len(g.made))
	return g
}

// Places is the grid of each sequence in the places that a window has on rows of
// a kind. Rows that a convolution makes have this grid, tokens among them.
func (g *Grids) Places(of Rows, w Window) []Grid {
	kind, _ := over(g.made, of, w)
	return g.of[kind]
}

// Of is the grid of each sequence in rows of a kind.
func (g *Grids) Of(kind Rows) []Grid { return g.of[kind] }

// Count is the rows of a kind in the step.
func (g *Grids) Count(kind Rows) int {
	n := len(g.of[kind])
	if n == 0 {
		return 0
	}
	last := g.of[kind][n-1]
	return last.First + last.Rows()
}

// Fill takes in a step that CheckStep has passed, or returns the fault of its
// features.
func (g *Grids) Fill(s *Step, limits Limits) error {
	if g.width == 0 && len(s.Features) != g.tokens*len(s.Tokens) {
		return fmt.Errorf("a step of %d tokens with %d features; want %d for each", len(s.Tokens), len(s.Features), g.tokens)
	}
	for i := range g.of {
		g.of[i] = g.of[i][:0]
	}
	if g.width > 0 {
		if err := g.frames(s, limits); err != nil {
			return err
		}
	}
	if !g.windows {
		return nil
	}
	for i := range s.Seqs {
		q := &s.Seqs[i]
		if g.whole && q.Context != q.Count {
			return wrong(i, "sequence %d has %d of its %d tokens in this step; a convolution over tokens needs all", i, q.Count, q.Context)
		}
		g.of[Tokens] = append(g.of[Tokens], Grid{int(q.First), int(q.Count), 1})
	}
	for i, made := range g.made {
		if err := g.slide(made, Frames+1+Rows(i)); err != nil {
			return err
		}
	}
	for _, kind := range g.ends {
		for i, made := range g.of[kind] {
			if made.Rows() != int(s.Seqs[i].Count) {
				return wrong(i, "sequence %d has %d tokens; convolutions make %d of its %d frames", i, s.Seqs[i].Count, made.Rows(), s.Seqs[i].Frames)
			}
		}
	}
	return nil
}

// frames lays out the sequences' own features.
func (g *Grids) frames(s *Step, limits Limits) error {
	next := 0
	for i := range s.Seqs {
		q := &s.Seqs[i]
		line := max(int(q.Line), 1)
		if q.Frames < 0 || q.Frames == 0 && g.windows || q.Line < 0 || int(q.Frames)%line != 0 {
			return wrong(i, "sequence %d has %d frames in lines of %d; want whole lines, and one at least", i, q.Frames, q.Line)
		}
		g.of[Frames] = append(g.of[Frames], Grid{next, int(q.Frames) / line, line})
		next += int(q.Frames)
	}
	if next > limits.Frames {
		return fmt.Errorf("step of %d frames; the limit is %d", next, limits.Frames)
	}
	if len(s.Features) != next*g.width {
		return fmt.Errorf("step of %d frames with %d features; want %d for each", next, len(s.Features), g.width)
	}
	return nil
}

// slide lays out the rows that a window makes.
func (g *Grids) slide(made Windowed, kind Rows) error {
	next, w := 0, made.Window
	for i, of := range g.of[made.Of] {
		n := Grid{next, w.over(0, of.Lines), w.over(1, of.Line)}
		if n.Rows() == 0 {
			return fmt.Errorf("sequence %d has %d lines of %d rows; a window of %d by %d taps, %d and %d apart, does not fit", i, of.Lines, of.Line,
				w.Kernel[0], w.Kernel[1], w.Dilation[0], w.Dilation[1])
		}
		g.of[kind] = append(g.of[kind], n)
		next += n.Rows()
	}
	return nil
}

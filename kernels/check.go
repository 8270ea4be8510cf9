package kernels

import (
	"fmt"
	"slices"
)

// Check returns the first fault of a program: operands that do not
// exist or are read before they are written, and shapes that do not fit.
// Backends call it in Compile.
func Check(p *Program) error {
	c := checker{p: p, written: make([]bool, len(p.Values))}
	for i, v := range p.Values {
		if v.Width < 1 {
			return fmt.Errorf("value %d has %d columns", i, v.Width)
		}
	}
	if err := p.checkWindowed(); err != nil {
		return err
	}
	for i, op := range p.Ops {
		c.op(op)
		if c.err != nil {
			return fmt.Errorf("operation %d (%T): %w", i, op, c.err)
		}
	}
	return nil
}

type checker struct {
	p       *Program
	written []bool
	err     error
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// value returns the value that t names, or an empty value and an error.
func (c *checker) value(t Tensor, name string) Value {
	if t < 0 || int(t) >= len(c.p.Values) {
		c.fail("%s is value %d of %d", name, t, len(c.p.Values))
		return Value{}
	}
	return c.p.Values[t]
}

// reads checks an operand of at least width columns.
func (c *checker) reads(t Tensor, name string, width int) Value {
	v := c.value(t, name)
	if c.err == nil && !c.written[t] {
		c.fail("%s is read before it is written", name)
	}
	if c.err == nil && v.Width < width {
		c.fail("%s has %d columns; want %d", name, v.Width, width)
	}
	return v
}

// writes checks a result of exactly width columns and the rows of like.
func (c *checker) writes(t Tensor, name string, rows Rows, width int) {
	v := c.value(t, name)
	if c.err == nil && (v.Width != width || v.Rows != rows) {
		c.fail("%s has %d columns and rows of kind %d; want %d and %d", name, v.Width, v.Rows, width, rows)
	}
	if c.err == nil {
		c.written[t] = true
	}
}

// weight checks a weight's shape; a nil one passes where it is optional.
func (c *checker) weight(w Weight, name string, out, in int, optional bool) {
	if w == nil {
		if !optional {
			c.fail("%s is missing", name)
		}
		return
	}
	if o, i := w.Shape(); o != out || i != in {
		c.fail("%s has shape (%d, %d); want (%d, %d)", name, o, i, out, in)
	}
}

func (c *checker) op(op Op) {
	switch op := op.(type) {
	case *Embed:
		if op.Table == nil {
			c.fail("Table is missing")
			return
		}
		_, width := op.Table.Shape()
		c.writes(op.Out, "Out", Tokens, width)
	case *Norm:
		c.norm(op)
	case *Linear:
		c.linear(op)
	case *RoPE:
		c.rope(op)
	case *Attention:
		c.attention(op)
	case *Activate:
		in := c.reads(op.In, "In", 1)
		if op.Up {
			in.Width /= 2
		}
		c.writes(op.Out, "Out", in.Rows, in.Width)
	case *MoE:
		c.moe(op)
	case *Scale:
		in := c.reads(op.In, "In", 1)
		if op.Gate != None {
			if g := c.reads(op.Gate, "Gate", 1); c.err == nil && g.Width != 1 && g.Width != in.Width {
				c.fail("Gate has %d columns; want 1 or %d", g.Width, in.Width)
			}
		}
		c.residual(op.Add, in.Rows, in.Width)
		c.writes(op.Out, "Out", in.Rows, in.Width)
	case *Delta:
		c.delta(op)
	case *LoRA:
		c.lora(op)
	case *Features:
		c.features(op)
	case *Convolution:
		c.convolution(op)
	case *Columns:
		in := c.reads(op.In, "In", 1)
		out := c.value(op.Out, "Out")
		if c.err == nil && (op.First < 0 || op.First+out.Width > in.Width) {
			c.fail("columns %d to %d of %d", op.First, op.First+out.Width, in.Width)
		}
		c.writes(op.Out, "Out", in.Rows, out.Width)
	case *Place:
		c.place(op)
	case *Pick:
		c.writes(op.Out, "Out", Sampled, c.tokens(op.In).Width)
	case *Pool:
		c.writes(op.Out, "Out", Seqs, c.tokens(op.In).Width)
	case *Sample:
		if v := c.reads(op.Logits, "Logits", 1); c.err == nil && v.Rows != Sampled {
			c.fail("Logits must have the sampled rows")
		}
	case *Output:
		c.reads(op.In, "In", 1)
	default:
		c.fail("no such operation")
	}
}

// tokens checks an In that must have a row for each token.
func (c *checker) tokens(t Tensor) Value {
	v := c.reads(t, "In", 1)
	if c.err == nil && v.Rows != Tokens {
		c.fail("In must have a row for each token")
	}
	return v
}

func (c *checker) residual(t Tensor, rows Rows, width int) {
	if t != None {
		if v := c.reads(t, "Add", width); c.err == nil && (v.Width != width || v.Rows != rows) {
			c.fail("Add has %d columns and rows of kind %d; want %d and %d", v.Width, v.Rows, width, rows)
		}
	}
}

func (c *checker) norm(op *Norm) {
	in := c.reads(op.In, "In", 1)
	c.residual(op.Add, in.Rows, in.Width)
	width := op.Width
	if width == 0 {
		width = in.Width
	}
	if op.First < 0 || op.Count < 0 || op.First+max(op.Count, 1)*width > in.Width {
		c.fail("%d groups of %d columns from column %d are beyond the %d columns of In", op.Count, width, op.First, in.Width)
	}
	if op.Count == 0 && c.err == nil && (in.Width-op.First)%width != 0 {
		c.fail("%d columns are not a multiple of Width %d", in.Width-op.First, width)
	}
	c.weight(op.Weight, "Weight", width, 1, true)
	c.weight(op.Bias, "Bias", width, 1, true)
	c.writes(op.Out, "Out", in.Rows, in.Width)
}

func (c *checker) linear(op *Linear) {
	in := c.reads(op.In, "In", 1)
	total := 0
	if op.In == op.Out {
		c.fail("In and Out are the same value")
	}
	if len(op.Weights) == 0 {
		c.fail("Weights is empty")
	}
	if len(op.Biases) != 0 && len(op.Biases) != len(op.Weights) {
		c.fail("%d Biases for %d Weights", len(op.Biases), len(op.Weights))
	}
	for i, w := range op.Weights {
		if w == nil {
			c.fail("Weights[%d] is missing", i)
			return
		}
		out, _ := w.Shape()
		c.weight(w, fmt.Sprintf("Weights[%d]", i), out, in.Width, false)
		if len(op.Biases) == len(op.Weights) {
			c.weight(op.Biases[i], fmt.Sprintf("Biases[%d]", i), out, 1, true)
		}
		total += out
	}
	c.residual(op.Add, in.Rows, total)
	c.writes(op.Out, "Out", in.Rows, total)
}

func (c *checker) rope(op *RoPE) {
	if x := c.reads(op.X, "X", op.First+op.Heads*op.HeadDim); c.err == nil && x.Rows != Tokens {
		c.fail("X must have a row for each token, which has a position")
	}
	rotary := op.Rotary
	if rotary == 0 {
		rotary = op.HeadDim
	}
	if op.First < 0 || op.Start < 0 || op.Start+rotary > op.HeadDim || rotary%2 != 0 || len(op.InvFreq) != rotary/2 {
		c.fail("columns %d to %d of heads of %d turn by %d frequencies", op.Start, op.Start+rotary, op.HeadDim, len(op.InvFreq))
	}
	if op.Axes != nil && (len(op.Axes) != len(op.InvFreq) || slices.Max(op.Axes) > 2) {
		c.fail("%d frequencies turn by axes %v; want an axis for each, from 0 to 2", len(op.InvFreq), op.Axes)
	}
}

func (c *checker) place(op *Place) {
	x := c.reads(op.X, "X", 1)
	if c.err == nil && x.Rows != Tokens {
		c.fail("X must have a row for each token")
	}
	if c.err == nil && (op.First < 0 || op.First+x.Width > op.Width) {
		c.fail("columns %d to %d of media rows of %d", op.First, op.First+x.Width, op.Width)
	}
	for _, other := range c.p.Ops {
		if p, ok := other.(*Place); ok && p.Width != op.Width {
			c.fail("media rows of %d and of %d columns in one program", op.Width, p.Width)
		}
	}
}

func (c *checker) attention(op *Attention) {
	if op.KVHeads < 1 || op.Heads%max(op.KVHeads, 1) != 0 {
		c.fail("%d heads share %d KV heads", op.Heads, op.KVHeads)
		return
	}
	c.reads(op.Q, "Q", op.QFirst+op.Heads*op.KeyDim)
	c.reads(op.K, "K", op.KFirst+op.KVHeads*op.KeyDim)
	c.cross(op)
	shared := false
	if op.KV != nil {
		spec := op.KV.Spec()
		shared = spec.ValueDim == 0
		if spec.Heads != op.KVHeads || spec.KeyDim != op.KeyDim || !shared && spec.ValueDim != op.ValueDim || op.Layer < 0 || op.Layer >= spec.Layers {
			c.fail("layer %d with %d KV heads of %d and %d columns does not fit the pages %+v", op.Layer, op.KVHeads, op.KeyDim, op.ValueDim, spec)
		}
		if op.Bidirectional {
			c.fail("Bidirectional attention keeps no KV")
		}
	}
	if shared && (op.V != None || op.ValueDim > op.KeyDim) {
		c.fail("these pages keep no values: V must be None and ValueDim at most KeyDim")
	}
	if !shared {
		c.reads(op.V, "V", op.VFirst+op.KVHeads*op.ValueDim)
	}
	c.weight(op.Sinks, "Sinks", op.Heads, 1, true)
	if op.Out == op.Q || op.Out == op.K || op.Out == op.V {
		c.fail("Out is one of the operands")
	}
	c.writes(op.Out, "Out", Tokens, op.Heads*op.ValueDim)
}

// cross checks the operands of Attention.Cross.
func (c *checker) cross(op *Attention) {
	if op.Cross == 0 || c.err != nil {
		return
	}
	switch {
	case op.Cross < 0 || op.KV == nil || !op.KV.Spec().Cross || op.KV.Spec().BlockTokens < op.Cross || op.V == None:
		c.fail("attention over %d frames; it needs pages of cross attention with room for as many, and values", op.Cross)
	case op.Bidirectional || op.Window != 0:
		c.fail("attention over frames has no window, and is not Bidirectional")
	case c.value(op.K, "K").Rows != Frames || c.value(op.V, "V").Rows != Frames:
		c.fail("K and V must have a row for each frame")
	}
}

func (c *checker) moe(op *MoE) {
	in := c.reads(op.In, "In", 1)
	experts := len(op.GateUp)
	if experts == 0 || len(op.Down) != experts || op.Top < 1 || op.Top > experts {
		c.fail("%d and %d experts, of which %d are chosen", experts, len(op.Down), op.Top)
		return
	}
	if op.Groups > 0 && (experts%op.Groups != 0 || op.TopGroups < 1 || op.TopGroups > op.Groups || op.Top > op.TopGroups*(experts/op.Groups)) {
		c.fail("%d of %d groups of %d experts", op.TopGroups, op.Groups, experts)
	}
	c.weight(op.Router, "Router", experts, in.Width, false)
	c.weight(op.Bias, "Bias", experts, 1, true)
	c.weight(op.RouterAdd, "RouterAdd", experts, 1, true)
	out := c.value(op.Out, "Out").Width
	for i := range experts {
		if op.Down[i] == nil {
			c.fail("Down[%d] is missing", i)
			return
		}
		_, inner := op.Down[i].Shape()
		c.weight(op.GateUp[i], fmt.Sprintf("GateUp[%d]", i), 2*inner, in.Width, false)
		c.weight(op.Down[i], fmt.Sprintf("Down[%d]", i), out, inner, false)
		if op.GateUpAdd != nil {
			c.weight(op.GateUpAdd[i], fmt.Sprintf("GateUpAdd[%d]", i), 2*inner, 1, true)
		}
		if op.DownAdd != nil {
			c.weight(op.DownAdd[i], fmt.Sprintf("DownAdd[%d]", i), out, 1, true)
		}
	}
	c.residual(op.Add, in.Rows, out)
	c.writes(op.Out, "Out", in.Rows, out)
}

func (c *checker) delta(op *Delta) {
	if op.KeyHeads < 1 || op.ValueHeads%max(op.KeyHeads, 1) != 0 || op.KV == nil || op.Conv == nil {
		c.fail("%d value heads share %d key heads", op.ValueHeads, op.KeyHeads)
		return
	}
	channels := 2*op.KeyHeads*op.KeyDim + op.ValueHeads*op.ValueDim
	c.reads(op.QKV, "QKV", channels)
	c.reads(op.Gates, "Gates", 2*op.ValueHeads)
	_, taps := op.Conv.Shape()
	c.weight(op.Conv, "Conv", channels, taps, false)
	c.weight(op.ALog, "ALog", op.ValueHeads, 1, false)
	c.weight(op.DtBias, "DtBias", op.ValueHeads, 1, false)
	if spec := op.KV.Spec(); spec.StateBytes < op.StateBytes() || op.Layer < 0 || op.Layer >= spec.Layers {
		c.fail("layer %d needs %d bytes of state; its pages have %d", op.Layer, op.StateBytes(), spec.StateBytes)
	}
	c.writes(op.Out, "Out", Tokens, op.ValueHeads*op.ValueDim)
}

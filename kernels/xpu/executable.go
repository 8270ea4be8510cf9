package xpu

import (
	"errors"
	"fmt"
	"slices"

	"roundhouse/kernels"
	"roundhouse/kernels/xpu/cl"
)

// executable is a program as a list of launches.
type executable struct {
	b        *Backend
	p        *kernels.Program
	limits   kernels.Limits
	values   []*cl.Buffer // by Tensor, while it lives: (limit of rows, width) float32
	idle     []*cl.Buffer // lent before, and free again
	launches []*launch
	packed   map[packKey]*operands
	layout   layout
	step     *cl.Buffer
	words    []int32 // the step as it is uploaded
	raw      []byte

	parts     *cl.Buffer // room for the splits of attention
	partsRoom int        // floats
	tiled     []int      // tiles of rows in the step, by size

	sampled kernels.Tensor // logits; None
	outputs []kernels.Tensor

	convolutions []*kernels.Convolution
	host         []float32 // rows that were read back
	sampler      *sampler
	rowsOut      [][]float32
	grids        *kernels.Grids
	placing      bool  // the step has media
	made         []int // rows of a step by kind, from features on
	err          error // the first that came up while compiling

	doing string // the operation whose launches are recorded
	timed bool   // each launch is waited for, and its time taken
	spans []kernels.Span
}

// Compile implements kernels.Backend.
func (b *Backend) Compile(p *kernels.Program, limits kernels.Limits) (kernels.Executable, error) {
	if err := kernels.Check(p); err != nil {
		return nil, err
	}
	if crosses(p) {
		return nil, fmt.Errorf("attention over what was heard: %w on GPUs; --device cpu has it", errors.ErrUnsupported)
	}
	if limits.Tokens < 1 || limits.Seqs < 1 || limits.Rows < 0 {
		return nil, fmt.Errorf("limits of %d tokens, %d sequences and %d sampled rows", limits.Tokens, limits.Seqs, limits.Rows)
	}
	e := &executable{b: b, p: p, limits: limits, packed: map[packKey]*operands{}, sampled: kernels.None, grids: kernels.NewGrids(p)}
	e.layout = layoutOf(p, limits, b.tuning.rowTiles(p))
	e.values = make([]*cl.Buffer, len(p.Values))
	if limits.Shared {
		e.idle, b.shared.idle = b.shared.idle, nil
	}
	e.step = e.lend(e.layout.words)
	e.attentionRoom()
	last := lastUses(p)
	for i, op := range p.Ops {
		if e.err == nil {
			e.begin(op)
			e.do(op)
			e.end(i, op, last)
		}
	}
	if limits.Shared {
		e.share()
	}
	b.execs = append(b.execs, e)
	return e, e.err
}

// crosses reports whether a program attends over frames.
func crosses(p *kernels.Program) bool {
	return slices.ContainsFunc(p.Ops, func(op kernels.Op) bool {
		a, ok := op.(*kernels.Attention)
		return ok && a.Cross > 0
	})
}

// limit is the most rows of a kind that a step may have.
func (e *executable) limit(kind kernels.Rows) int {
	n := e.limits.Frames
	if e.p.Base(kind) != kernels.Frames {
		n = counts{tokens: e.limits.Tokens, sampled: e.limits.Rows, seqs: e.limits.Seqs}.of(e.p.Base(kind))
	}
	return max(1, n)
}

// room sets n floats or dwords aside.
func (e *executable) room(n int) *cl.Buffer {
	if e.err != nil {
		return nil
	}
	buf, err := e.b.buffer(4 * int64(n))
	if err != nil {
		e.err = fmt.Errorf("a step of %d tokens: %w", e.limits.Tokens, err)
	}
	return buf
}

func (e *executable) release() {
	for _, l := range e.launches {
		l.kernel.Release()
		if l.parted != nil {
			l.parted.merge.kernel.Release()
		}
	}
}

// rowsOf is the number of rows of a value in a step.
func (e *executable) rowsOf(t kernels.Tensor) func(c counts) int {
	kind := e.p.Values[t].Rows
	return func(c counts) int { return c.of(kind) }
}

// eachRow is a global size of n columns by the rows of a value.
func (e *executable) eachRow(n int, t kernels.Tensor) func(c counts) []uintptr {
	rows := e.rowsOf(t)
	return func(c counts) []uintptr { return dims(n, rows(c)) }
}

// value is the buffer of an operand; nil for None.
func (e *executable) value(t kernels.Tensor) *cl.Buffer {
	if t == kernels.None {
		return nil
	}
	return e.values[t]
}

// vector is the buffer of a vector and where it begins there; (nil, -1) for none.
func vector(w kernels.Weight) (*cl.Buffer, int64) {
	if w == nil {
		return nil, -1
	}
	v := w.(*weight)
	return v.arena, v.base
}

// do records the launches of one operation.
func (e *executable) do(op kernels.Op) {
	e.doing = e.p.NameOf(op)
	switch op := op.(type) {
	case *kernels.Embed:
		e.embed(op)
	case *kernels.Norm:
		e.norm(op)
	case *kernels.Linear:
		e.linear(op)
	case *kernels.RoPE:
		e.rope(op)
	case *kernels.Attention:
		e.attention(op)
	case *kernels.Activate:
		e.wrote(op.Out)
		e.launch("activate", nil, e.eachRow(e.p.Width(op.Out), op.Out), e.value(op.In), int32(op.Kind), op.Up, op.Limit, e.value(op.Out))
	case *kernels.MoE:
		e.moe(op)
	case *kernels.Scale:
		e.scale(op)
	case *kernels.Delta:
		e.delta(op)
	case *kernels.LoRA:
		e.lora(op)
	case *kernels.Features:
		e.features(op)
	case *kernels.Convolution:
		e.convolution(op)
	case *kernels.Columns:
		e.wrote(op.Out)
		e.launch("columns", nil, e.eachRow(e.p.Width(op.Out), op.Out), e.value(op.In), e.p.Width(op.In), op.First, e.value(op.Out))
	case *kernels.Place:
		e.place(op)
	case *kernels.Pick:
		e.wrote(op.Out)
		e.launch("pick", nil, e.eachRow(e.p.Width(op.Out), op.Out), e.value(op.In), e.step, e.layout.rows, e.value(op.Out))
	case *kernels.Pool:
		e.pool(op)
	case *kernels.Sample:
		e.sample(op)
	case *kernels.Output:
		e.outputs = append(e.outputs, op.In)
	}
}

func (e *executable) embed(op *kernels.Embed) {
	e.wrote(op.Out)
	w := op.Table.(*weight)
	at := [...]int{kernels.TokenIDs: e.layout.tokens, kernels.PositionIDs: e.layout.positions, kernels.TypeIDs: e.layout.types}[op.IDs]
	format := w.format
	if format == kernels.FormatGPTQ || format == kernels.FormatAWQ {
		format = kernels.FormatInt4
	}
	e.launch("embed", nil, e.eachRow(w.in, op.Out), w.arena, w.base, int32(format), w.in, w.scales, w.zeros, w.group,
		w.order, e.step, at, one(op.Scale), e.value(op.Out))
}

// one is x, where 0 means 1.
func one(x float32) float32 {
	if x == 0 {
		return 1
	}
	return x
}

func (e *executable) norm(op *kernels.Norm) {
	e.wrote(op.Out)
	width, stride := op.Width, e.p.Width(op.In)
	if width == 0 {
		width = stride
	}
	groups := op.Count
	if groups == 0 {
		groups = (stride - op.First) / width
	}
	in, residual := e.value(op.In), none
	if op.Add != kernels.None {
		e.wrote(op.Add)
		if groups*width == stride { // every column is normalised, and so passes by
			residual = e.value(op.Add)
		} else {
			e.launch("add_rows", nil, e.all(op.Add), in, e.value(op.Add))
			in = e.value(op.Add)
		}
	}
	if groups*width < stride && in != e.value(op.Out) {
		e.launch("copy_rows", nil, e.all(op.Out), in, e.value(op.Out))
	}
	weights, weight := vector(op.Weight)
	biases, bias := vector(op.Bias)
	rows := e.rowsOf(op.In)
	e.launch("norm", dims(64, 1, 1), func(c counts) []uintptr { return dims(64, groups, rows(c)) },
		in, e.value(op.Out), stride, op.First, width, op.Layer, op.Eps, weights, weight, op.Offset, biases, bias, residual, residual != nil)
}

// all is a global size of every element of a value.
func (e *executable) all(t kernels.Tensor) func(c counts) []uintptr {
	rows, width := e.rowsOf(t), e.p.Width(t)
	return func(c counts) []uintptr { return dims(rows(c) * width) }
}

func (e *executable) rope(op *kernels.RoPE) {
	e.wrote(op.X)
	rotary := op.Rotary
	if rotary == 0 {
		rotary = op.HeadDim
	}
	table := make([]float32, 0, rotary)
	for _, f := range op.InvFreq {
		high, low := turns(f)
		table = append(table, high, low)
	}
	axes := -1
	if op.Axes != nil {
		axes = e.layout.axes
	}
	for _, axis := range op.Axes {
		table = append(table, float32(axis))
	}
	frequencies := e.room(len(table))
	if e.err == nil {
		e.err = frequencies.Write(0, floatBytes(table))
	}
	rows, heads := e.rowsOf(op.X), op.Heads
	e.launch("rope", nil, func(c counts) []uintptr { return dims(rotary/2, heads, rows(c)) },
		e.value(op.X), e.p.Width(op.X), op.First, op.HeadDim, op.Start, rotary, op.Interleaved,
		frequencies, e.step, e.layout.positions, axes, one(op.Scale))
}

// place is no launch in a step without media.
func (e *executable) place(op *kernels.Place) {
	e.wrote(op.X)
	width, rows := e.p.Width(op.X), e.rowsOf(op.X)
	l := &e.layout
	global := func(c counts) []uintptr {
		if !e.placing {
			return dims(0)
		}
		return dims(width, rows(c))
	}
	e.launch("place", nil, global, e.value(op.X), e.step, l.mediaRow, l.media, op.Width, op.First, op.Add)
}

func (e *executable) scale(op *kernels.Scale) {
	e.wrote(op.Out)
	gateWidth := 0
	if op.Gate != kernels.None {
		gateWidth = e.p.Width(op.Gate)
	}
	e.launch("scale_rows", nil, e.eachRow(e.p.Width(op.Out), op.Out), e.value(op.In), e.value(op.Gate), gateWidth,
		e.value(op.Add), op.Add != kernels.None, int32(op.Kind), one(op.Factor), e.value(op.Out))
}

func (e *executable) pool(op *kernels.Pool) {
	e.wrote(op.Out)
	kind := map[kernels.Pooling]int32{kernels.PoolCLS: 0, kernels.PoolMean: 1, kernels.PoolLast: 2}[op.Kind]
	e.launch("pool", dims(64, 1), func(c counts) []uintptr { return dims(64, c.seqs) },
		e.value(op.In), e.p.Width(op.In), kind, op.Normalise, e.step, e.layout.firsts, e.layout.counts, e.value(op.Out))
}

func (e *executable) sample(op *kernels.Sample) {
	e.sampled = op.Logits
	if op.SoftCap > 0 {
		e.wrote(op.Logits)
		e.launch("soft_cap", nil, e.all(op.Logits), e.value(op.Logits), op.SoftCap)
	}
	e.newSampler(op.Logits)
}

package xpu

import (
	"roundhouse/kernels"
	"roundhouse/kernels/xpu/cl"
)

// packKey names a value in the form that a linear reads: the same activations are
// packed once for all matrices that read them.
type packKey struct {
	value   kernels.Tensor
	integer bool
	order   int64 // of the weight's columns; -1: in order
	arena   *cl.Buffer
}

// operands are activations as a linear reads them.
type operands struct {
	x      *cl.Buffer
	stride int        // elements or dwords a row
	scales *cl.Buffer // of integer formats
	sums   *cl.Buffer
	lent   bool // not the value itself
}

// wrote forgets the packed forms of a value that is written anew.
func (e *executable) wrote(t kernels.Tensor) {
	for k, p := range e.packed {
		if k.value == t {
			e.unpack(p)
			delete(e.packed, k)
		}
	}
}

// unpack gives the room of operands back.
func (e *executable) unpack(p *operands) {
	if p.lent {
		e.done(p.x, p.scales, p.sums)
	}
}

// integer reports whether a format's activations are int8.
func integer(f kernels.Format) bool {
	switch f {
	case kernels.FormatInt8, kernels.FormatInt4, kernels.FormatGPTQ, kernels.FormatAWQ:
		return true
	}
	return false
}

// pack makes sure that rows of a value stand ready for a weight.
func (e *executable) pack(t kernels.Tensor, w *weight) *operands {
	rows := e.rowsOf(t)
	return e.packRows(t, e.value(t), e.p.Width(t), e.limit(e.p.Values[t].Rows), rows, w)
}

// packRows is pack for a buffer that may be no value of the program; key is then
// kernels.None and nothing is remembered.
func (e *executable) packRows(key kernels.Tensor, x *cl.Buffer, width, most int, rows func(c counts) int, w *weight) *operands {
	switch w.format {
	case kernels.FormatF32, kernels.FormatF16:
		return &operands{x: x, stride: width}
	}
	k := packKey{value: key, integer: integer(w.format), order: w.order}
	if w.order >= 0 {
		k.arena = w.arena
	}
	if p := e.packed[k]; p != nil && key != kernels.None {
		return p
	}
	p := &operands{lent: true}
	if integer(w.format) {
		groups := (w.in + 127) / 128
		p.stride = groups * 32
		p.x, p.scales, p.sums = e.lend(most*p.stride), e.lend(most*groups+64), e.lend(most*groups+64) // the last tile of rows reads beyond
		e.launch("quantise", nil, func(c counts) []uintptr { return dims(groups, rows(c)) },
			x, width, w.in, w.arena, w.order, p.x, p.scales, p.sums)
	} else {
		p.stride = (w.in + 127) / 128 * 64 // fp8 and mxfp4 read whole units
		stride := p.stride
		p.x = e.lend(most * p.stride)
		e.launch("pack_bf16", nil, func(c counts) []uintptr { return dims(stride, rows(c)) }, x, width, w.in, p.x, p.stride)
	}
	if key != kernels.None {
		e.packed[k] = p
	}
	return p
}

func (e *executable) linear(op *kernels.Linear) {
	first := 0
	for i, m := range op.Weights {
		w := m.(*weight)
		p := e.pack(op.In, w)
		var bias kernels.Weight
		if len(op.Biases) > 0 {
			bias = op.Biases[i]
		}
		vectors, at := vector(bias)
		e.multiply(product{
			w: w, x: p, rows: e.rowsOf(op.In), most: e.limit(e.p.Values[op.In].Rows), vectors: vectors, bias: at,
			add: e.value(op.Add), out: e.value(op.Out), stride: e.p.Width(op.Out), first: first, scale: one(op.Scale),
		})
		first += w.out
	}
	e.wrote(op.Out)
}

// product is one matrix by some rows.
type product struct {
	w        *weight
	x        *operands
	rows     func(c counts) int
	most     int        // rows that there may be; 0: unknown
	vectors  *cl.Buffer // of the bias
	bias     int64      // -1: none
	add, out *cl.Buffer
	stride   int // columns of out
	first    int // of the result in out
	scale    float32

	// Of experts, whose matrices have w's shape: where each begins in w's arena, which
	// of them each row goes to, and how many rows share a row of x.
	bases, which *cl.Buffer
	share        int
}

// multiply launches a product, for one row a group and for many: which of the two
// runs depends on the step, their bits do not.
func (e *executable) multiply(p product) {
	base := p.w.base
	kinds := []bool{false, true}
	if p.bases != nil {
		base, kinds = -1, kinds[:1] // each row goes to another matrix
	} else if p.most == 1 {
		kinds = kinds[:1]
	}
	for _, many := range kinds {
		items, height, wide := e.b.tuning.group(p.w.format, many)
		global := func(c counts) []uintptr {
			n := p.rows(c)
			if len(kinds) == 2 && many != (n > 1) {
				return dims(0)
			}
			return dims((tiles(p.w.out)+wide-1)/wide*items, (n+height-1)/height)
		}
		e.launch(linearName(p.w.format, many), dims(items, 1), global,
			p.w.arena, base, p.bases, p.which, p.x.x, p.x.stride, p.x.scales, p.x.sums, max(p.share, 1),
			p.w.scales, p.w.zeros, p.w.group, p.vectors, p.bias,
			p.add, p.add != nil, p.out, p.stride, p.first,
			p.w.out, p.w.in, rowCount{}, height, p.scale)
		if e.err == nil {
			e.launches[len(e.launches)-1].rows = p.rows
		}
	}
}

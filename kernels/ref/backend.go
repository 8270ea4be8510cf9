package ref

import (
	"fmt"
	"math"
	"slices"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
)

// Backend computes on the calling goroutine.
type Backend struct{}

// New returns the reference backend.
func New() *Backend { return &Backend{} }

// Name implements kernels.Backend.
func (*Backend) Name() string { return "reference" }

// Close implements kernels.Backend.
func (*Backend) Close() error { return nil }

// weight is a matrix (out, in) of stored values. Integer formats keep codes
// less their zero point, and a scale for each group of columns.
type weight struct {
	format  kernels.Format
	out, in int
	values  []float64 // (out, in); nil for integer formats
	codes   []int32   // (out, in), zero point taken off
	scales  []float32 // (out, in/group)
	group   int       // columns a scale
	order   []int32   // the input column of each stored column; nil: in order
}

func (w *weight) Shape() (out, in int) { return w.out, w.in }
func (w *weight) Bytes() int64         { return int64(8*len(w.values) + 4*len(w.codes) + 4*len(w.scales)) }

// Weight implements kernels.Backend.
func (*Backend) Weight(src kernels.Source, format kernels.Format) (kernels.Weight, error) {
	if err := num.Check(src, format); err != nil {
		return nil, err
	}
	w := &weight{format: format, out: src.Out, in: src.In}
	switch format {
	case kernels.FormatInt8:
		w.int8(src)
	case kernels.FormatInt4, kernels.FormatGPTQ, kernels.FormatAWQ:
		return w, w.int4(src, format)
	case kernels.FormatMXFP4:
		w.mxfp4(src)
	case kernels.FormatFP8:
		w.fp8(src)
	default:
		w.values = make([]float64, src.Out*src.In)
		row := make([]float32, src.In)
		for o := range src.Out {
			num.Row(row, src, o)
			for k, v := range row {
				w.values[o*src.In+k] = float64(stored(format, v))
			}
		}
	}
	return w, nil
}

// stored rounds a weight to its format.
func stored(format kernels.Format, x float32) float32 {
	switch format {
	case kernels.FormatBF16:
		return num.Operand(x)
	case kernels.FormatF16:
		return num.FromF16(num.F16(x))
	}
	return x
}

func (w *weight) int8(src kernels.Source) {
	w.codes, w.scales, w.group = make([]int32, w.out*w.in), make([]float32, w.out), w.in
	row, q := make([]float32, w.in), make([]int8, w.in)
	for o := range w.out {
		num.Row(row, src, o)
		w.scales[o] = num.Int8Row(q, row)
		for k, c := range q {
			w.codes[o*w.in+k] = int32(c)
		}
	}
}

func (w *weight) int4(src kernels.Source, format kernels.Format) error {
	q, err := num.Quantise(src, format)
	if err != nil {
		return err
	}
	w.codes, w.scales, w.group, w.order = make([]int32, w.out*w.in), q.Scales, q.Group, q.Order
	for i, c := range q.Codes {
		zero := uint8(8)
		if q.Zeros != nil {
			zero = q.Zeros[i/q.Group]
		}
		w.codes[i] = int32(c) - int32(zero)
	}
	return nil
}

func (w *weight) mxfp4(src kernels.Source) {
	w.values = make([]float64, w.out*w.in)
	for i := range w.values {
		code := src.Data[i/2] >> (i % 2 * 4)
		w.values[i] = float64(num.FromE2M1(code)) * float64(num.FromE8M0(src.Scales[i/32]))
	}
}

func (w *weight) fp8(src kernels.Source) {
	w.values = make([]float64, w.out*w.in)
	if src.Type == kernels.F8E4M3 {
		scales := make([]float32, num.ScaleColumns(src))
		for i := range w.values {
			o, k := i/w.in, i%w.in
			if k == 0 {
				num.ScaleRow(scales, src, o)
			}
			w.values[i] = float64(num.FromE4M3(src.Data[i])) * float64(scales[num.ScaleIndex(src, k)])
		}
		return
	}
	row, q := make([]float32, w.in), make([]uint8, w.in)
	for o := range w.out {
		num.Row(row, src, o)
		scale := num.FP8Row(q, row)
		for k, c := range q {
			w.values[o*w.in+k] = float64(num.FromE4M3(c)) * float64(scale)
		}
	}
}

// at is the value of element (o, k).
func (w *weight) at(o, k int) float64 {
	if w.order != nil {
		k = slices.Index(w.order, int32(k))
	}
	if w.values != nil {
		return w.values[o*w.in+k]
	}
	i := o*w.in + k
	return float64(w.codes[i]) * float64(w.scales[i/w.group])
}

// kv is the pages of a group of layers, with every number widened.
type kv struct {
	spec  kernels.KVSpec
	keys  []float32 // (Layers, Blocks, BlockTokens, Heads, KeyDim)
	vals  []float32 // (Layers, Blocks, BlockTokens, Heads, ValueDim)
	state []float32 // (Layers, Blocks, StateBytes/4)
}

// KV implements kernels.Backend.
func (*Backend) KV(spec kernels.KVSpec) (kernels.KV, error) {
	switch spec.Type {
	case kernels.F32, kernels.BF16, kernels.F16, kernels.F8E4M3, kernels.Int8:
	default:
		return nil, fmt.Errorf("pages of %v; the reference has float32, bfloat16, float16, fp8_e4m3 and int8", spec.Type)
	}
	tokens := spec.Layers * spec.Blocks * spec.BlockTokens * spec.Heads
	return &kv{
		spec:  spec,
		keys:  make([]float32, tokens*spec.KeyDim),
		vals:  make([]float32, tokens*spec.ValueDim),
		state: make([]float32, spec.Layers*spec.Blocks*spec.StateBytes/4),
	}, nil
}

func (c *kv) Spec() kernels.KVSpec { return c.spec }
func (c *kv) Bytes() int64         { return int64(c.spec.Blocks) * c.spec.PageBytes() }

// keep rounds what a token keeps, heads of dim numbers each. Int8 has a scale for
// each head, max/127.
func (c *kv) keep(to, from []float32, dim int) {
	if c.spec.Type != kernels.Int8 {
		for k, x := range from {
			to[k] = c.page(x)
		}
		return
	}
	q := make([]int8, dim)
	for ; len(from) > 0; to, from = to[dim:], from[dim:] {
		scale, _ := num.QuantiseRow(q, from[:dim])
		for k, code := range q {
			to[k] = float32(code) * scale
		}
	}
}

// page rounds a number to the type of the pages.
func (c *kv) page(x float32) float32 {
	switch c.spec.Type {
	case kernels.BF16:
		return num.RoundBF16(x)
	case kernels.F16:
		return num.FromF16(num.F16(x))
	case kernels.F8E4M3:
		return num.FromE4M3(num.E4M3(x))
	}
	return x
}

// slot is the index of a token's page entry (KVHeads rows follow each other).
func (c *kv) slot(layer int, table []int32, token int) int {
	block := int(table[token/c.spec.BlockTokens])
	return ((layer*c.spec.Blocks+block)*c.spec.BlockTokens + token%c.spec.BlockTokens) * c.spec.Heads
}

// Compile implements kernels.Backend.
func (*Backend) Compile(p *kernels.Program, limits kernels.Limits) (kernels.Executable, error) {
	if err := kernels.Check(p); err != nil {
		return nil, err
	}
	if err := checkConvolutions(p); err != nil {
		return nil, err
	}
	return &executable{p: p, limits: limits, grids: kernels.NewGrids(p)}, nil
}

// activation is the scalar functions, in float64.
func activation(kind kernels.Activation, x float64) float64 {
	switch kind {
	case kernels.SiLU:
		return x * sigmoid(x)
	case kernels.GELU:
		return 0.5 * x * (1 + math.Erf(x/math.Sqrt2))
	case kernels.GELUTanh:
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	case kernels.ReLU:
		return max(x, 0)
	case kernels.Tanh:
		return math.Tanh(x)
	case kernels.Sigmoid:
		return sigmoid(x)
	case kernels.QuickGELU:
		return x * sigmoid(1.702*x)
	}
	panic(fmt.Sprintf("BUG: activation %d of one operand", kind))
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// gated is activation(gate) · up, or gpt-oss's form of it.
func gated(kind kernels.Activation, gate, up, limit float64) float64 {
	if limit > 0 {
		gate = min(gate, limit)
		up = min(max(up, -limit), limit)
	}
	if kind == kernels.SwiGLUOAI {
		return gate * sigmoid(1.702*gate) * (up + 1)
	}
	return activation(kind, gate) * up
}

// Dequantise is the values (out, in) that a format makes of a source, to
// compare what a kernel's operands lose apart from what the format loses.
func Dequantise(src kernels.Source, format kernels.Format) ([]float32, error) {
	k, err := New().Weight(src, format)
	if err != nil {
		return nil, err
	}
	w := k.(*weight)
	x := make([]float32, w.out*w.in)
	for o := range w.out {
		for k := range w.in {
			x[o*w.in+k] = float32(w.at(o, k))
		}
	}
	return x, nil
}

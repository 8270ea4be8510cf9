package model

import (
	"fmt"

	"roundhouse/kernels"
	"roundhouse/worker/weights"
)

// gptOSS alternates windows with layers that see all, lets attention rest on a
// sink, and has experts in every layer whose gates are clamped.
//
// gpt-oss-20b, gpt-oss-120b.
func gptOSS(g *graph) {
	g.want(g.SwiGLUAlpha == 0 || g.SwiGLUAlpha == 1.702, "swiglu_alpha is %g; this architecture is known with 1.702", g.SwiGLUAlpha)
	s := g.begin(1, 0)
	a := attention{RoPE: g.rope(fullAttention), Bias: g.AttentionBias, OutBias: g.AttentionBias, Sinks: true}
	s.layers(a, func(p string, layer int, in kernels.Tensor) kernels.Tensor {
		out := g.value("branch", kernels.Tokens, g.Hidden)
		g.prog.Do(g.gptOSSExperts(p+"mlp.", &kernels.MoE{In: in, Out: out, Add: kernels.None,
			Kind: kernels.SwiGLUOAI, Limit: float32(g.SwiGLULimit), Top: g.ExpertsPerTok, TopFirst: true}))
		return out
	})
	s.end(0)
}

func (g *graph) gptOSSExperts(p string, op *kernels.MoE) *kernels.MoE {
	n, inner := g.LocalExperts, g.Inner
	if !g.checkExperts(n, inner, op.Top) || g.hopeless() {
		return op
	}
	op.Router = g.router(p+"router.weight", n, g.Hidden)
	op.RouterAdd = g.vector(p+"router.bias", n)
	for i := range n {
		op.GateUp = append(op.GateUp, g.gptOSSMatrix(p+"experts.gate_up_proj", i, 2*inner, g.Hidden, true))
		op.Down = append(op.Down, g.gptOSSMatrix(p+"experts.down_proj", i, g.Hidden, inner, false))
		op.GateUpAdd = append(op.GateUpAdd, g.gptOSSBias(p+"experts.gate_up_proj_bias", i, 2*inner, true))
		op.DownAdd = append(op.DownAdd, g.gptOSSBias(p+"experts.down_proj_bias", i, g.Hidden, false))
	}
	return op
}

// gptOSSMatrix binds one expert's matrix. The files hold the experts of a
// layer in one tensor: (experts, in, out) of floats, or (experts, out, in) of
// four bits. Rows of gate and up take turns there; here gate comes first.
func (g *graph) gptOSSMatrix(name string, expert, out, in int, paired bool) kernels.Weight {
	if g.binder.quant == nil {
		p := piece{name: name, shape: []int{g.LocalExperts, in, out}, first: expert, count: 1}
		return g.bind(wanted{format: g.linearFormat(in), out: out, in: in, pieces: []piece{p}, make: func(data [][]byte, stored kernels.DType) (kernels.Source, error) {
			d := transpose(data[0], in, out, stored.Size())
			if paired {
				d = unpair(d, out)
			}
			return kernels.Source{Type: stored, Data: d}, nil
		}})
	}
	if in%mxGroup != 0 {
		g.faults = append(g.faults, fmt.Sprintf("mxfp4 experts of %d columns; want a multiple of %d", in, mxGroup))
		return counted{out: out, in: in}
	}
	bytes := []weights.DType{weights.U8}
	format := kernels.FormatMXFP4
	if g.format == kernels.FormatF32 {
		format = kernels.FormatF32
	}
	return g.bind(wanted{format: format, out: out, in: in,
		pieces: []piece{
			{name: name + "_blocks", shape: []int{g.LocalExperts, out, in / mxGroup, mxGroup / 2}, types: bytes, first: expert, count: 1},
			{name: name + "_scales", shape: []int{g.LocalExperts, out, in / mxGroup}, types: bytes, first: expert, count: 1},
		},
		make: func(data [][]byte, _ kernels.DType) (kernels.Source, error) {
			codes, scales := data[0], data[1]
			if paired {
				codes, scales = unpair(codes, out), unpair(scales, out)
			}
			if format == kernels.FormatF32 {
				return kernels.Source{Type: kernels.F32, Data: mxfp4Floats(codes, scales)}, nil
			}
			return kernels.Source{Type: kernels.UInt8, Data: codes, Scales: scales, ScalesType: kernels.UInt8, Group: mxGroup}, nil
		}})
}

func (g *graph) gptOSSBias(name string, expert, n int, paired bool) kernels.Weight {
	p := piece{name: name, shape: []int{g.LocalExperts, n}, first: expert, count: 1}
	return g.bind(wanted{format: kernels.FormatVector, out: n, in: 1, pieces: []piece{p}, make: func(data [][]byte, stored kernels.DType) (kernels.Source, error) {
		d := data[0]
		if paired {
			d = unpair(d, n)
		}
		return kernels.Source{Type: stored, Data: d}, nil
	}})
}

func gptOSSDefaults(s *settings) {
	s.NormEps, s.RopeTheta, s.MaxPositions = 1e-5, 150_000, 131072
	s.Vocab, s.Hidden, s.Inner, s.Layers, s.Heads, s.KVHeads, s.HeadDim = 201088, 2880, 2880, 36, 64, 8, 64
	s.LocalExperts, s.ExpertsPerTok, s.SwiGLULimit, s.AttentionBias = 128, 4, 7, true
	s.Window = integer(128)
}

// gptOSSWindows: every other layer has the window, the first among them.
func gptOSSWindows(s *settings) {
	if len(s.LayerTypes) > 0 {
		return
	}
	for i := range min(max(s.Layers, 0), maxLayers) {
		s.LayerTypes = append(s.LayerTypes, [...]string{slidingAttention, fullAttention}[i%2])
	}
}

package model

import (
	"math"

	"roundhouse/kernels"
)

// attention is grouped-query attention over paged keys and values: what its
// families differ in. The zero value is Llama's but for RoPE.
type attention struct {
	Bias    bool  // of queries, keys and values
	OutBias bool  // of the output
	RoPE    *rope // nil: positions are not turned

	// RMS norms over each head of queries and of keys; "" is none.
	QNorm, KNorm string
	NormLast     bool    // after RoPE instead of before
	NormOffset   float32 // of their weights

	Scale   float32 // of scores; 0: 1/√HeadDim
	SoftCap float32 // of scores; 0: none
	Sinks   bool    // a logit a head that draws attention to nothing
	Gate    bool    // q_proj has a gate behind each head's query, whose sigmoid the output is times
}

// attend records o_proj(attention(in)) of a layer, whose tensors' names begin
// with prefix.
func (g *graph) attend(layer int, prefix string, in kernels.Tensor, a attention) kernels.Tensor {
	heads, kvHeads, dim := g.Heads, g.KVHeads, g.HeadDim
	q, kv := heads*dim, kvHeads*dim
	qkv := g.value("qkv", kernels.Tokens, q+2*kv) // queries, keys, values
	g.prog.Do(&kernels.Linear{In: in, Out: qkv, Add: kernels.None,
		Weights: []kernels.Weight{
			g.queries(prefix, a.Gate),
			g.matrix(prefix+"k_proj.weight", kv, g.Hidden),
			g.matrix(prefix+"v_proj.weight", kv, g.Hidden)},
		Biases: g.biases(a.Bias, prefix, q, kv)})
	parts := []part{{"q_proj", q, 0}, {"k_proj", kv, q}, {"v_proj", kv, q + kv}}
	if a.Gate {
		parts = parts[1:] // q_proj has the gate's rows between those of the queries
	}
	g.adapt(in, qkv, prefix, parts...)
	if !a.NormLast {
		g.headNorms(prefix, qkv, a)
	}
	if r := a.RoPE; r != nil {
		// The keys' heads follow the queries', so they turn together.
		g.prog.Do(&kernels.RoPE{X: qkv, Heads: heads + kvHeads, HeadDim: dim, Rotary: r.Dim,
			Interleaved: r.Interleaved, InvFreq: r.Freqs, Axes: r.Axes, Scale: r.Scale})
	}
	if a.NormLast {
		g.headNorms(prefix, qkv, a)
	}
	scale := a.Scale
	if scale == 0 {
		scale = float32(1 / math.Sqrt(float64(dim)))
	}
	mixed := g.value("mixed", kernels.Tokens, q)
	number, within := g.place(layer)
	g.prog.Do(&kernels.Attention{Q: qkv, K: qkv, V: qkv, KFirst: q, VFirst: q + kv, Out: mixed,
		KV: g.pages(number), Layer: within, Group: number,
		Heads: heads, KVHeads: kvHeads, KeyDim: dim, ValueDim: dim,
		Scale: scale, Window: g.groups[number].window, SoftCap: a.SoftCap,
		Sinks: g.optional(a.Sinks, prefix+"sinks", heads)})
	if a.Gate {
		gate := g.value("attention gate", kernels.Tokens, q)
		g.prog.Do(&kernels.Linear{In: in, Out: gate, Add: kernels.None, Weights: []kernels.Weight{g.everyOther(prefix+"q_proj.weight", 1)}})
		g.prog.Do(&kernels.Scale{In: mixed, Gate: gate, Kind: kernels.Sigmoid, Add: kernels.None, Out: mixed})
	}
	out := g.value("branch", kernels.Tokens, g.Hidden)
	o := &kernels.Linear{In: mixed, Out: out, Add: kernels.None, Weights: []kernels.Weight{g.matrix(prefix+"o_proj.weight", g.Hidden, q)}}
	if a.OutBias {
		o.Biases = []kernels.Weight{g.vector(prefix+"o_proj.bias", g.Hidden)}
	}
	g.prog.Do(o)
	g.adapt(mixed, out, prefix, part{"o_proj", g.Hidden, 0})
	return out
}

func (g *graph) queries(prefix string, gate bool) kernels.Weight {
	if gate {
		return g.everyOther(prefix+"q_proj.weight", 0)
	}
	return g.matrix(prefix+"q_proj.weight", g.Heads*g.HeadDim, g.Hidden)
}

// everyOther binds each second head's rows of a matrix, from first on.
func (g *graph) everyOther(name string, first int) kernels.Weight {
	w := wanted{format: g.linearFormat(g.Hidden), out: g.Heads * g.HeadDim, in: g.Hidden}
	for h := range g.Heads {
		w.pieces = append(w.pieces, piece{name: name, shape: []int{2 * w.out, g.Hidden}, first: (2*h + first) * g.HeadDim, count: g.HeadDim})
	}
	return g.bind(w)
}

func (g *graph) biases(yes bool, prefix string, q, kv int) []kernels.Weight {
	if !yes {
		return nil
	}
	return []kernels.Weight{g.vector(prefix+"q_proj.bias", q), g.vector(prefix+"k_proj.bias", kv), g.vector(prefix+"v_proj.bias", kv)}
}

func (g *graph) headNorms(prefix string, qkv kernels.Tensor, a attention) {
	norm := func(name string, first, count int) {
		if name == "" {
			return
		}
		g.prog.Do(&kernels.Norm{In: qkv, Out: qkv, Add: kernels.None, Weight: g.vector(prefix+name+".weight", g.HeadDim),
			Eps: float32(g.NormEps), Offset: a.NormOffset, Width: g.HeadDim, First: first, Count: count})
	}
	norm(a.QNorm, 0, g.Heads)
	norm(a.KNorm, g.Heads*g.HeadDim, g.KVHeads)
}

// pages is the KV cache of a group; the first pass has none.
func (g *graph) pages(number int) kernels.KV {
	if g.kv == nil {
		return nil
	}
	return g.kv[number]
}

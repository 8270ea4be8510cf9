package model

import "roundhouse/kernels"

// deltaNet is the gated delta rule that takes attention's place in most layers
// of Qwen3-Next and Qwen3.5: instead of pages of keys and values a sequence
// has one state of fixed size.
type deltaNet struct {
	keyHeads, valueHeads int
	keyDim, valueDim     int // columns of a head
	taps                 int // of the convolution
	fused                bool
}

func (s *settings) deltaNet() deltaNet {
	return deltaNet{keyHeads: s.DeltaKeyHeads, valueHeads: s.DeltaValueHeads, keyDim: s.DeltaKeyDim, valueDim: s.DeltaValueDim, taps: s.DeltaTaps}
}

func (d deltaNet) keys() int     { return d.keyHeads * d.keyDim }
func (d deltaNet) values() int   { return d.valueHeads * d.valueDim }
func (d deltaNet) channels() int { return 2*d.keys() + d.values() }

// stateBytes is the memory of one sequence and layer, as kernels.Delta has it.
func (d deltaNet) stateBytes() int {
	return 4 * ((d.taps-1)*d.channels() + d.valueHeads*d.keyDim*d.valueDim)
}

// check notes a fault unless the numbers make sense.
func (d deltaNet) check(g *graph) bool {
	in := func(n, most int) bool { return n >= 1 && n <= most }
	ok := in(d.keyHeads, 1024) && in(d.valueHeads, 1024) && in(d.keyDim, 1024) && in(d.valueDim, 1024) && in(d.taps, 16) && d.valueHeads%max(d.keyHeads, 1) == 0
	g.want(ok, "linear attention of %d key heads of %d columns, %d value heads of %d and %d taps; want 1 to 1024 of each, 1 to 16 taps, and a multiple of the key heads",
		d.keyHeads, d.keyDim, d.valueHeads, d.valueDim, d.taps)
	return ok
}

// delta records out_proj(norm(rule(in)) · silu(z)).
func (g *graph) delta(layer int, p string, in kernels.Tensor, d deltaNet) kernels.Tensor {
	out := g.value("branch", kernels.Tokens, g.Hidden)
	if !d.check(g) {
		return out
	}
	qkv, z := g.value("delta qkv", kernels.Tokens, d.channels()), g.value("delta z", kernels.Tokens, d.values())
	gates, mixed := g.value("delta gates", kernels.Tokens, 2*d.valueHeads), g.value("delta mixed", kernels.Tokens, d.values())
	project := func(out kernels.Tensor, w ...kernels.Weight) {
		g.prog.Do(&kernels.Linear{In: in, Out: out, Add: kernels.None, Weights: w})
	}
	if d.fused {
		project(qkv, g.deltaRows(p+"in_proj_qkvz.weight", d, d.sizes(), 0, 1, 2))
		project(z, g.deltaRows(p+"in_proj_qkvz.weight", d, d.sizes(), 3))
		each := d.valueHeads / d.keyHeads
		project(gates, g.deltaRows(p+"in_proj_ba.weight", d, []int{each, each}, 0, 1))
	} else {
		project(qkv, g.matrix(p+"in_proj_qkv.weight", d.channels(), g.Hidden))
		project(z, g.matrix(p+"in_proj_z.weight", d.values(), g.Hidden))
		project(gates, g.matrix(p+"in_proj_b.weight", d.valueHeads, g.Hidden), g.matrix(p+"in_proj_a.weight", d.valueHeads, g.Hidden))
	}
	number, within := g.place(layer)
	g.prog.Do(&kernels.Delta{QKV: qkv, Gates: gates, Out: mixed, KV: g.pages(number), Layer: within, Group: number,
		KeyHeads: d.keyHeads, ValueHeads: d.valueHeads, KeyDim: d.keyDim, ValueDim: d.valueDim,
		Conv: g.bind(wanted{format: kernels.FormatF32, out: d.channels(), in: d.taps,
			pieces: []piece{whole(p+"conv1d.weight", d.channels(), 1, d.taps)}}),
		ALog: g.vector(p+"A_log", d.valueHeads), DtBias: g.vector(p+"dt_bias", d.valueHeads)})
	g.prog.Do(&kernels.Norm{In: mixed, Out: mixed, Add: kernels.None, Weight: g.vector(p+"norm.weight", d.valueDim), Eps: float32(g.NormEps), Width: d.valueDim})
	g.prog.Do(&kernels.Scale{In: mixed, Gate: z, Kind: kernels.SiLU, Add: kernels.None, Out: mixed})
	g.prog.Do(&kernels.Linear{In: mixed, Out: out, Add: kernels.None, Weights: []kernels.Weight{g.matrix(p+"out_proj.weight", g.Hidden, d.values())}})
	return out
}

// sizes are the rows that each key head has of queries, keys, values and z.
func (d deltaNet) sizes() []int {
	each := d.valueHeads / d.keyHeads * d.valueDim
	return []int{d.keyDim, d.keyDim, each, each}
}

// deltaRows binds rows of a matrix that goes through the key heads and has
// several things of each: the things that are wanted, each for all heads.
func (g *graph) deltaRows(name string, d deltaNet, sizes []int, things ...int) kernels.Weight {
	head := 0
	for _, n := range sizes {
		head += n
	}
	w := wanted{format: g.linearFormat(g.Hidden), in: g.Hidden}
	for _, thing := range things {
		for h := range d.keyHeads {
			first := h * head
			for _, n := range sizes[:thing] {
				first += n
			}
			w.pieces = append(w.pieces, piece{name: name, shape: []int{d.keyHeads * head, g.Hidden}, first: first, count: sizes[thing]})
			w.out += sizes[thing]
		}
	}
	return g.bind(w)
}

package model

import (
	"encoding/binary"
	"math"
	"runtime"
	"sync"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
)

// mla is DeepSeek's latent attention. All heads share one latent vector a
// token, which is all that the cache keeps:
//
//	c = norm(x · Wcᵀ)         (rank)   latent
//	r = rope(x · Wrᵀ)         (turned) a key that turns, the same for all heads
//	k = [Wuk · c, r]          what a head would have as its key
//	v = Wuv · c               and as its value
//
// A score is q·k = (Wukᵀ·q₁)·c + q₂·r, so that with Wukᵀ·Wq worked out while
// loading, queries meet the latents themselves; and likewise Wo·Wuv behind.
// So there is one KV head of rank + turned columns, whose first rank columns
// are its values too.
type mla struct {
	rank   int // columns of the latent
	plain  int // columns of a head that do not turn
	turned int // columns of a head that do
	value  int // columns of a head's value
}

func (s *settings) mla() mla {
	return mla{rank: s.KVRank, plain: s.PlainDim, turned: s.TurnedDim, value: s.ValueDim}
}

// key is the columns of what the cache keeps of a token.
func (m mla) key() int { return m.rank + m.turned }

// check notes a fault unless the numbers make sense.
func (m mla) check(g *graph) bool {
	in := func(n, most int) bool { return n >= 1 && n <= most }
	ok := in(m.rank, 1<<14) && in(m.plain, 1024) && in(m.turned, 1024) && m.turned%2 == 0 && in(m.value, 1024)
	g.want(ok, "latent attention with kv_lora_rank %d, qk_nope_head_dim %d, qk_rope_head_dim %d, v_head_dim %d; want 1 to 16384, and 1 to 1024 of each other",
		m.rank, m.plain, m.turned, m.value)
	if r := g.QueryRank; r != nil {
		g.want(*r >= 1 && *r <= 1<<17, "q_lora_rank is %d; want null or 1 to 131072", *r)
		ok = ok && *r >= 1 && *r <= 1<<17
	}
	return ok
}

// mlaEps is the eps of the norms within, which no file says.
const mlaEps = 1e-6

// latent records o_proj(attention(in)).
func (g *graph) latent(layer int, p string, in kernels.Tensor, m mla, r *rope, scale float32) kernels.Tensor {
	out := g.value("branch", kernels.Tokens, g.Hidden)
	if !m.check(g) {
		return out
	}
	q, k := g.value("queries", kernels.Tokens, g.Heads*m.key()), g.value("latent", kernels.Tokens, m.key())
	from, width, name := in, g.Hidden, p+"q_proj.weight"
	if rank := g.QueryRank; rank != nil {
		from, width, name = g.value("query latent", kernels.Tokens, *rank), *rank, p+"q_b_proj.weight"
		g.prog.Do(&kernels.Linear{In: in, Out: from, Add: kernels.None, Weights: []kernels.Weight{g.matrix(p+"q_a_proj.weight", *rank, g.Hidden)}})
		g.prog.Do(&kernels.Norm{In: from, Out: from, Add: kernels.None, Eps: mlaEps, Weight: g.vector(p+"q_a_layernorm.weight", *rank)})
	}
	g.prog.Do(&kernels.Linear{In: from, Out: q, Add: kernels.None, Weights: []kernels.Weight{g.latentQueries(name, p+"kv_b_proj.weight", m, width)}})
	g.prog.Do(&kernels.Linear{In: in, Out: k, Add: kernels.None, Weights: []kernels.Weight{g.matrix(p+"kv_a_proj_with_mqa.weight", m.key(), g.Hidden)}})
	g.prog.Do(&kernels.Norm{In: k, Out: k, Add: kernels.None, Eps: mlaEps, Width: m.rank, Count: 1, Weight: g.vector(p+"kv_a_layernorm.weight", m.rank)})
	turn := func(x kernels.Tensor, heads int) {
		g.prog.Do(&kernels.RoPE{X: x, Heads: heads, HeadDim: m.key(), Start: m.rank, Rotary: m.turned, Interleaved: true, InvFreq: r.Freqs, Scale: r.Scale})
	}
	turn(q, g.Heads)
	turn(k, 1)
	mixed := g.value("mixed", kernels.Tokens, g.Heads*m.rank)
	number, within := g.place(layer)
	g.prog.Do(&kernels.Attention{Q: q, K: k, V: kernels.None, Out: mixed, KV: g.pages(number), Layer: within, Group: number,
		Heads: g.Heads, KVHeads: 1, KeyDim: m.key(), ValueDim: m.rank, Scale: scale})
	g.prog.Do(&kernels.Linear{In: mixed, Out: out, Add: kernels.None, Weights: []kernels.Weight{g.latentOutput(p+"o_proj.weight", p+"kv_b_proj.weight", m)}})
	return out
}

// latentQueries binds, for each head, Wukᵀ·Wq and below it the rows of Wq that
// turn: (heads·(rank + turned), width).
func (g *graph) latentQueries(query, up string, m mla, width int) kernels.Weight {
	rows := m.plain + m.turned
	w := wanted{format: g.linearFormat(width), out: g.Heads * m.key(), in: width,
		pieces: []piece{whole(query, g.Heads*rows, width), whole(up, g.Heads*(m.plain+m.value), m.rank)}}
	w.make = func(data [][]byte, t kernels.DType) (kernels.Source, error) {
		out := make([]byte, 4*w.out*width)
		eachHead(g.Heads, func(h int) {
			wq := decode(t, data[0], h*rows*width, rows*width)                              // (plain + turned, width)
			wuk := decode(t, data[1], h*(m.plain+m.value)*m.rank, m.plain*m.rank)           // (plain, rank)
			product := matMul(transposed(wuk, m.plain, m.rank), wq, m.rank, m.plain, width) // (rank, width)
			encode(out[4*h*m.key()*width:], product)
			encode(out[4*(h*m.key()+m.rank)*width:], wq[m.plain*width:])
		})
		return kernels.Source{Type: kernels.F32, Data: out}, nil
	}
	return g.bind(w)
}

// latentOutput binds Wo·Wuv, head beside head: (hidden, heads·rank).
func (g *graph) latentOutput(output, up string, m mla) kernels.Weight {
	w := wanted{format: g.linearFormat(g.Heads * m.rank), out: g.Hidden, in: g.Heads * m.rank,
		pieces: []piece{whole(output, g.Hidden, g.Heads*m.value), whole(up, g.Heads*(m.plain+m.value), m.rank)}}
	hidden, heads := g.Hidden, g.Heads
	w.make = func(data [][]byte, t kernels.DType) (kernels.Source, error) {
		out := make([]byte, 4*hidden*w.in)
		eachHead(heads, func(h int) {
			wo := make([]float32, 0, hidden*m.value) // (hidden, value)
			for row := range hidden {
				wo = append(wo, decode(t, data[0], (row*heads+h)*m.value, m.value)...)
			}
			wuv := decode(t, data[1], (h*(m.plain+m.value)+m.plain)*m.rank, m.value*m.rank) // (value, rank)
			product := matMul(wo, wuv, hidden, m.value, m.rank)
			for row := range hidden {
				encode(out[4*(row*w.in+h*m.rank):], product[row*m.rank:(row+1)*m.rank])
			}
		})
		return kernels.Source{Type: kernels.F32, Data: out}, nil
	}
	return g.bind(w)
}

// eachHead calls f for every head, on all processors, and waits.
func eachHead(heads int, f func(h int)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for h := range heads {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			f(h)
		})
	}
	wg.Wait()
}

// matMul is a (rows, inner) times b (inner, columns).
func matMul(a, b []float32, rows, inner, columns int) []float32 {
	out := make([]float32, rows*columns)
	for r := range rows {
		row := out[r*columns : (r+1)*columns]
		for k := range inner {
			x := a[r*inner+k]
			for c, y := range b[k*columns : (k+1)*columns] {
				row[c] += x * y
			}
		}
	}
	return out
}

// transposed turns (rows, columns) into (columns, rows).
func transposed(a []float32, rows, columns int) []float32 {
	out := make([]float32, len(a))
	for r := range rows {
		for c := range columns {
			out[c*rows+r] = a[r*columns+c]
		}
	}
	return out
}

// decode reads n stored numbers from element first on.
func decode(t kernels.DType, data []byte, first, n int) []float32 {
	out := make([]float32, n)
	num.Decode(out, t, data, first)
	return out
}

// encode writes float32 numbers.
func encode(dst []byte, numbers []float32) {
	for i, v := range numbers {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

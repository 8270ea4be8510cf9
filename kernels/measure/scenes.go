package measure

import (
	"fmt"

	"roundhouse/kernels"
)

const blockTokens = 16 // of a page

// linear goes round as many matrices as are beyond the caches.
func linear(b kernels.Backend, o Options, kind Kind, m matrix, rows int) (Figures, error) {
	s := newScene(b)
	src := m.source(o.Size, o.Size)
	x, y := s.rows(o.Size, rows), s.p.New(kernels.Tokens, o.Size)
	var bytes int64
	times := 0
	for times == 0 || kind == OneRow && bytes < o.Bytes {
		w := s.weight(src, m.format)
		if s.err != nil {
			return Figures{}, s.err
		}
		s.p.Do(&kernels.Linear{In: x, Out: y, Weights: []kernels.Weight{w}, Add: kernels.None})
		bytes += w.Bytes()
		times++
	}
	size := int64(o.Size)
	f := Figures{Name: fmt.Sprintf("linear %s, %d rows", m.name, rows), Kind: kind,
		Bytes: bytes/int64(times) + 8*int64(rows)*size, Flops: 2 * int64(rows) * size * size}
	return s.time(f, y, rows, times, o)
}

// attention is that of a model of 8 thousand million parameters: 32 heads, of which four
// share a head of keys and values in bf16.
func attention(b kernels.Backend, o Options, rows int) (Figures, error) {
	const heads, kvHeads, dim = 32, 8, 128
	context := min(max(o.Size, 256), 4096)
	rows = min(rows, context)
	s := newScene(b)
	pages, err := b.KV(kernels.KVSpec{Layers: 1, Blocks: context / blockTokens, BlockTokens: blockTokens, Heads: kvHeads, KeyDim: dim, ValueDim: dim, Type: kernels.BF16})
	if err != nil {
		return Figures{}, err
	}
	x, y := s.rows((heads+2*kvHeads)*dim, rows), s.p.New(kernels.Tokens, heads*dim)
	s.p.Do(&kernels.Attention{Q: x, K: x, V: x, KFirst: heads * dim, VFirst: (heads + kvHeads) * dim, Out: y, KV: pages,
		Heads: heads, KVHeads: kvHeads, KeyDim: dim, ValueDim: dim, Scale: 0.088})
	out := s.p.New(kernels.Sampled, heads*dim)
	s.p.Do(&kernels.Pick{In: y, Out: out})
	s.p.Do(&kernels.Output{In: out})
	f := Figures{Name: fmt.Sprintf("attention, %d rows of %d", rows, context), Kind: Attention,
		Bytes: int64(context)*kvHeads*dim*4 + 8*int64(rows)*heads*dim, Flops: 4 * int64(rows) * int64(context-rows/2) * heads * dim}
	return s.timeStep(f, step(rows, context), 1, o)
}

const rowwiseTimes = 4

func norm(b kernels.Backend, o Options) (Figures, error) {
	return normalise(b, o, Figures{Name: fmt.Sprintf("norm, %d rows", o.Rows), Flops: 4}, false)
}

func layerNorm(b kernels.Backend, o Options) (Figures, error) {
	return normalise(b, o, Figures{Name: fmt.Sprintf("layer norm, %d rows", o.Rows), Flops: 6}, true)
}

// normalise measures a norm of so many operations a number.
func normalise(b kernels.Backend, o Options, f Figures, layer bool) (Figures, error) {
	s := newScene(b)
	x, y := s.rows(o.Size, o.Rows), s.p.New(kernels.Tokens, o.Size)
	for range rowwiseTimes {
		s.p.Do(&kernels.Norm{In: x, Out: y, Add: kernels.None, Eps: 1e-6, Layer: layer})
	}
	n := int64(o.Rows) * int64(o.Size)
	f.Kind, f.Bytes, f.Flops = Rowwise, 8*n, f.Flops*n
	return s.time(f, y, o.Rows, rowwiseTimes, o)
}

func activate(b kernels.Backend, o Options) (Figures, error) {
	s := newScene(b)
	x, y := s.rows(2*o.Size, o.Rows), s.p.New(kernels.Tokens, o.Size)
	for range rowwiseTimes {
		s.p.Do(&kernels.Activate{In: x, Out: y, Kind: kernels.SiLU, Up: true})
	}
	n := int64(o.Rows) * int64(o.Size)
	return s.time(Figures{Name: fmt.Sprintf("activate, %d rows", o.Rows), Kind: Rowwise, Bytes: 12 * n, Flops: 5 * n}, y, o.Rows, rowwiseTimes, o)
}

// choose takes the greatest of a vocabulary of 37 times the size of a matrix: about that
// of today's models.
func choose(b kernels.Backend, o Options) (Figures, error) {
	s := newScene(b)
	vocab := 37 * o.Size
	x := s.rows(vocab, 1)
	logits := s.p.New(kernels.Sampled, vocab)
	s.p.Do(&kernels.Pick{In: x, Out: logits})
	s.p.Do(&kernels.Sample{Logits: logits})
	st := step(1, 1)
	st.Sampling = []kernels.Sampling{{TopP: 1}}
	return s.timeStep(Figures{Name: fmt.Sprintf("choose of %d tokens", vocab), Kind: Rowwise, Bytes: 4 * int64(vocab), Flops: 2 * int64(vocab)}, st, 1, o)
}

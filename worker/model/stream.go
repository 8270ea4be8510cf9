package model

import "roundhouse/kernels"

// stream is the residual stream of a decoder: what a branch wrote last is
// added to it by the norm that reads it next.
type stream struct {
	g       *graph
	x       kernels.Tensor // (tokens, hidden)
	pending kernels.Tensor // (tokens, hidden); None before the first branch
	offset  float32        // of the norms' weights
}

// begin embeds the step's tokens.
func (g *graph) begin(scale, normOffset float32) *stream {
	x := g.value("stream", kernels.Tokens, g.Hidden)
	g.prog.Do(&kernels.Embed{Out: x, Table: g.embedding(), IDs: kernels.TokenIDs, Scale: scale})
	return &stream{g: g, x: x, pending: kernels.None, offset: normOffset}
}

// embedding is what the head's matrix is, too, where it has none of its own.
func (g *graph) embedding() kernels.Weight {
	name := g.root() + "embed_tokens.weight"
	if g.Tied && g.ownHead() == "" && g.pooling == nil && !g.scoring {
		return g.vocabulary(name, g.Vocab, g.Hidden)
	}
	return g.table(name, g.Vocab, g.Hidden)
}

// branch is x += post(f(pre(x))), where pre and post are RMS norms named by
// their weights; post may be "".
func (s *stream) branch(pre, post string, f func(in kernels.Tensor) kernels.Tensor) {
	out := f(s.norm(pre))
	if post != "" {
		s.g.rmsNorm(out, out, kernels.None, post+".weight", s.offset)
	}
	s.pending = out
}

// layers is Llama's shape of a decoder, which most families have: each layer
// adds attention of the normed stream, then an MLP of it.
func (s *stream) layers(a attention, mlp func(prefix string, layer int, in kernels.Tensor) kernels.Tensor) {
	for i := range s.g.Layers {
		p := s.g.layer(i)
		s.branch(p+"input_layernorm", "", func(in kernels.Tensor) kernels.Tensor {
			return s.g.attend(i, p+"self_attn.", in, a)
		})
		s.branch(p+"post_attention_layernorm", "", func(in kernels.Tensor) kernels.Tensor {
			return mlp(p, i, in)
		})
	}
}

// norm adds what is pending to the stream and normalises it.
func (s *stream) norm(name string) kernels.Tensor {
	h := s.g.value("normed", kernels.Tokens, s.g.Hidden)
	if s.pending == kernels.None {
		s.g.rmsNorm(s.x, h, kernels.None, name+".weight", s.offset)
	} else {
		s.g.rmsNorm(s.pending, h, s.x, name+".weight", s.offset)
	}
	return h
}

func (g *graph) rmsNorm(in, out, add kernels.Tensor, name string, offset float32) {
	g.prog.Do(&kernels.Norm{In: in, Out: out, Add: add, Weight: g.vector(name, g.Hidden), Eps: float32(g.NormEps), Offset: offset})
}

// end closes the program with the last norm: the wanted rows, the head and a
// token for a model that generates, one vector a sequence for one that embeds.
func (s *stream) end(softCap float32) {
	g := s.g
	h := s.norm(g.root() + "norm")
	if g.pooling != nil {
		g.output(h)
		return
	}
	if g.scoring {
		g.score(h)
		return
	}
	rows := g.value("picked", kernels.Sampled, g.Hidden)
	logits := g.value("logits", kernels.Sampled, g.Vocab)
	g.prog.Do(&kernels.Pick{In: h, Out: rows})
	g.prog.Do(&kernels.Linear{In: rows, Out: logits, Weights: []kernels.Weight{g.head()}, Add: kernels.None})
	g.prog.Do(&kernels.Sample{Logits: logits, SoftCap: softCap})
}

// output ends a program that embeds.
func (g *graph) output(in kernels.Tensor) {
	pooled := g.value("pooled", kernels.Seqs, g.Hidden)
	g.prog.Do(&kernels.Pool{In: in, Out: pooled, Kind: g.pooling.kind, Normalise: g.pooling.normalise})
	g.prog.Do(&kernels.Output{In: pooled})
}

// score ends a program that scores: one number a label from the last token, as
// it is (no sigmoid, no softmax).
func (g *graph) score(in kernels.Tensor) {
	n := g.labels()
	g.want(n <= maxLabels, "%d labels; want 1 to %d", n, maxLabels)
	last, scores := g.value("pooled", kernels.Seqs, g.Hidden), g.value("scores", kernels.Seqs, n)
	g.prog.Do(&kernels.Pool{In: in, Out: last, Kind: kernels.PoolLast})
	score := kernels.Weight(nil)
	if len(g.AnswerTokens) == 2 {
		score = g.twoTokens(g.AnswerTokens)
	} else {
		score = g.table("score.weight", n, g.Hidden)
	}
	g.prog.Do(&kernels.Linear{In: last, Out: scores, Add: kernels.None, Weights: []kernels.Weight{score}})
	g.prog.Do(&kernels.Output{In: scores})
}

func (g *graph) head() kernels.Weight { return g.vocabulary(g.headName(), g.Vocab, g.Hidden) }

// headName is the name of the head's matrix.
func (g *graph) headName() string {
	// As in transformers, a head of its own beats the flag.
	if name := g.ownHead(); name != "" {
		return name
	}
	if g.Tied {
		return g.root() + "embed_tokens.weight"
	}
	return "lm_head.weight"
}

// ownHead is the name of a head that is stored apart; empty if there is none.
func (g *graph) ownHead() string {
	for _, name := range []string{"lm_head.weight", "language_model.lm_head.weight"} {
		if g.has(name) {
			return name
		}
	}
	return ""
}

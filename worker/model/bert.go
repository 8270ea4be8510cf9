package model

import (
	"fmt"
	"math"

	"roundhouse/kernels"
)

// encoder is BERT: the sum of three embeddings, then layers that attend both
// ways, with a layer norm behind each branch.
type encoder struct {
	root  string // what the names of tensors begin with
	shift int    // rows of the position table before position 0
	pads  bool   // the row before position 0 is that of padding
}

// encode records the encoder and returns the last layer's output.
func (g *graph) encode(e encoder) kernels.Tensor {
	g.wantAct(g.Act, "gelu")
	g.want(g.PositionType == "" || g.PositionType == "absolute", "position_embedding_type is %q; this architecture is known with absolute", g.PositionType)
	g.want(!g.Decoder, "is_decoder: this architecture is known as an encoder")
	g.want(g.TypeVocab >= 1 && g.TypeVocab <= 1024, "type_vocab_size is %d; want 1 to 1024", g.TypeVocab)
	g.want(g.KVHeads == g.Heads && g.HeadDim*g.Heads == g.Hidden, "%d heads of %d columns; want hidden_size %d", g.Heads, g.HeadDim, g.Hidden)
	// Two values take turns: a norm reads one and writes the other.
	x, y := g.value("stream", kernels.Tokens, g.Hidden), g.value("normed", kernels.Tokens, g.Hidden)
	g.embedEncoder(e, x, y)
	for i := range g.Layers {
		p := fmt.Sprintf("%sencoder.layer.%d.", e.root, i)
		g.layerNorm(g.attendBothWays(p+"attention.", y), y, x, p+"attention.output.LayerNorm")
		g.layerNorm(g.encoderMLP(p, x), x, y, p+"output.LayerNorm")
	}
	return y
}

// layerNorm is out = norm(in + add).
func (g *graph) layerNorm(in, add, out kernels.Tensor, name string) {
	g.prog.Do(&kernels.Norm{In: in, Out: out, Add: add, Layer: true, Eps: float32(g.NormEps),
		Weight: g.vector(name+".weight", g.Hidden), Bias: g.vector(name+".bias", g.Hidden)})
}

// embedEncoder leaves the normed sum of the embeddings in y.
func (g *graph) embedEncoder(e encoder, x, y kernels.Tensor) {
	p := e.root + "embeddings."
	types, places := g.value("branch", kernels.Tokens, g.Hidden), g.value("mixed", kernels.Tokens, g.Hidden)
	g.prog.Do(&kernels.Embed{Out: x, IDs: kernels.TokenIDs, Table: g.table(p+"word_embeddings.weight", g.Vocab, g.Hidden)})
	g.prog.Do(&kernels.Embed{Out: types, IDs: kernels.TypeIDs, Table: g.table(p+"token_type_embeddings.weight", g.TypeVocab, g.Hidden)})
	positions := []piece{{name: p + "position_embeddings.weight", shape: []int{g.MaxPositions + e.shift, g.Hidden}, first: e.shift, count: g.MaxPositions}}
	rows := g.MaxPositions
	if e.pads {
		padding := positions[0]
		padding.first, padding.count = e.shift-1, 1
		positions, rows = append(positions, padding), rows+1
	}
	g.prog.Do(&kernels.Embed{Out: places, IDs: kernels.PositionIDs,
		Table: g.bind(wanted{format: wideFormat(g.format), out: rows, in: g.Hidden, pieces: positions})})
	g.prog.Do(&kernels.Scale{In: types, Gate: kernels.None, Add: x, Out: x})
	g.layerNorm(places, x, y, p+"LayerNorm")
}

func (g *graph) attendBothWays(p string, in kernels.Tensor) kernels.Tensor {
	n := g.Hidden
	qkv, mixed, out := g.value("qkv", kernels.Tokens, 3*n), g.value("mixed", kernels.Tokens, n), g.value("branch", kernels.Tokens, n)
	l := &kernels.Linear{In: in, Out: qkv, Add: kernels.None}
	for _, name := range []string{"self.query", "self.key", "self.value"} {
		l.Weights = append(l.Weights, g.matrix(p+name+".weight", n, n))
		l.Biases = append(l.Biases, g.vector(p+name+".bias", n))
	}
	g.prog.Do(l)
	g.prog.Do(&kernels.Attention{Q: qkv, K: qkv, V: qkv, KFirst: n, VFirst: 2 * n, Out: mixed, Bidirectional: true,
		Heads: g.Heads, KVHeads: g.Heads, KeyDim: g.HeadDim, ValueDim: g.HeadDim, Scale: float32(1 / math.Sqrt(float64(g.HeadDim)))})
	g.linear(mixed, out, p+"output.dense", n, n)
	return out
}

func (g *graph) encoderMLP(p string, in kernels.Tensor) kernels.Tensor {
	wide, out := g.value("inner", kernels.Tokens, g.Inner), g.value("branch", kernels.Tokens, g.Hidden)
	g.linear(in, wide, p+"intermediate.dense", g.Inner, g.Hidden)
	g.prog.Do(&kernels.Activate{In: wide, Out: wide, Kind: kernels.GELU})
	g.linear(wide, out, p+"output.dense", g.Hidden, g.Inner)
	return out
}

// linear is out = in · Wᵀ + bias.
func (g *graph) linear(in, out kernels.Tensor, name string, rows, columns int) {
	g.prog.Do(&kernels.Linear{In: in, Out: out, Add: kernels.None,
		Weights: []kernels.Weight{g.matrix(name+".weight", rows, columns)}, Biases: []kernels.Weight{g.vector(name+".bias", rows)}})
}

// classify ends a program that scores: the first token through a dense layer
// with tanh, then one number a label, as they are (no sigmoid, no softmax).
func (g *graph) classify(in kernels.Tensor, dense, labels string) {
	n := g.labels()
	g.want(n <= maxLabels, "%d labels; want 1 to %d", n, maxLabels)
	first, hidden := g.value("pooled", kernels.Seqs, g.Hidden), g.value("dense", kernels.Seqs, g.Hidden)
	scores := g.value("scores", kernels.Seqs, n)
	g.prog.Do(&kernels.Pool{In: in, Out: first, Kind: kernels.PoolCLS})
	g.linear(first, hidden, dense, g.Hidden, g.Hidden)
	g.prog.Do(&kernels.Activate{In: hidden, Out: hidden, Kind: kernels.Tanh})
	g.linear(hidden, scores, labels, n, g.Hidden)
	g.prog.Do(&kernels.Output{In: scores})
}

// maxLabels bounds num_labels and id2label.
const maxLabels = 1 << 16

// labels is how many numbers a classifier gives: 2 where the file is silent.
func (s *settings) labels() int {
	if len(s.AnswerTokens) == 2 {
		return 1
	}
	if s.Labels > 0 {
		return s.Labels
	}
	if len(s.LabelNames) > 0 {
		return len(s.LabelNames)
	}
	return 2
}

// bertEmbed is BERT with its pooled output. Checkpoints of BERT that were made
// for something else too have "bert." before the names.
func bertEmbed(g *graph) {
	root := ""
	if g.has("bert.embeddings.word_embeddings.weight") {
		root = "bert."
	}
	g.output(g.encode(encoder{root: root}))
}

// bertScore is BERT with a classifier.
func bertScore(g *graph) {
	g.classify(g.encode(encoder{root: "bert."}), "bert.pooler.dense", "classifier")
}

func bertDefaults(s *settings) {
	s.Act, s.LayerNormEps, s.MaxPositions, s.TypeVocab = "gelu", 1e-12, 512, 2
	s.Vocab, s.Hidden, s.Layers, s.Heads, s.Inner = 30522, 768, 12, 12, 3072
}

func encoderEps(s *settings) { s.NormEps = s.LayerNormEps }

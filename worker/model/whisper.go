package model

import (
	"fmt"
	"math"

	"roundhouse/kernels"
)

// listener records a decoder that attends to what was heard.
type listener struct{ *graph }

// whisper is a decoder that attends to what it wrote and to what was heard. The
// keys and values of what was heard are made once, in the step in which a sequence
// begins.
//
// Whisper, of all sizes.
func whisper(from *graph) {
	g := listener{from}
	e := g.ears
	g.wantAct(g.Act, "gelu")
	g.want(e.Bins >= 1 && e.Bins <= 1024, "num_mel_bins is %d; want 1 to 1024", e.Bins)
	g.want(e.Rows >= 1 && e.Rows <= 1<<16, "max_source_positions is %d; want 1 to %d", e.Rows, 1<<16)
	g.want(g.HeadDim*g.Heads == g.Hidden, "decoder_attention_heads is %d; want a part of d_model %d", g.Heads, g.Hidden)
	if len(g.faults) > 0 {
		return
	}
	const root = "model.decoder."
	x, y := g.value("stream", kernels.Tokens, g.Hidden), g.value("branch", kernels.Tokens, g.Hidden)
	g.prog.Do(&kernels.Embed{Out: x, IDs: kernels.TokenIDs, Table: g.words(root + "embed_tokens.weight")})
	g.prog.Do(&kernels.Embed{Out: y, IDs: kernels.PositionIDs, Table: g.table(root+"embed_positions.weight", g.MaxPositions, g.Hidden)})
	heard, normed := g.value("heard", kernels.Frames, g.Hidden), g.value("normed", kernels.Tokens, g.Hidden)
	g.prog.Do(&kernels.Features{Out: heard})
	for i := range g.Layers {
		p := fmt.Sprintf("%slayers.%d.", root, i)
		g.layerNorm(y, x, normed, p+"self_attn_layer_norm")
		g.ownWords(i, p+"self_attn.", normed, y)
		g.layerNorm(y, x, normed, p+"encoder_attn_layer_norm")
		g.heardWords(i, p+"encoder_attn.", heard, normed, y)
		g.layerNorm(y, x, normed, p+"final_layer_norm")
		wide := g.value("inner", kernels.Tokens, g.Inner)
		g.linear(normed, wide, p+"fc1", g.Inner, g.Hidden)
		g.prog.Do(&kernels.Activate{In: wide, Out: wide, Kind: kernels.GELU})
		g.linear(wide, y, p+"fc2", g.Hidden, g.Inner)
	}
	g.layerNorm(y, x, normed, root+"layer_norm")
	rows, logits := g.value("picked", kernels.Sampled, g.Hidden), g.value("logits", kernels.Sampled, g.Vocab)
	g.prog.Do(&kernels.Pick{In: normed, Out: rows})
	head := root + "embed_tokens.weight"
	if g.ownProjection() {
		head = "proj_out.weight"
	}
	g.prog.Do(&kernels.Linear{In: rows, Out: logits, Weights: []kernels.Weight{g.vocabulary(head, g.Vocab, g.Hidden)}, Add: kernels.None})
	g.prog.Do(&kernels.Sample{Logits: logits})
}

// ownProjection reports whether the head is a matrix of its own.
func (g listener) ownProjection() bool { return !g.Tied || g.has("proj_out.weight") }

// words is the embedding, which is the head's matrix too where that has
// none of its own.
func (g listener) words(name string) kernels.Weight {
	if g.ownProjection() {
		return g.table(name, g.Vocab, g.Hidden)
	}
	return g.vocabulary(name, g.Vocab, g.Hidden)
}

// side is linears over the same rows whose outputs stand side by side. Keys have
// no bias.
func (g listener) side(p string, in kernels.Tensor, out kernels.Tensor, names ...string) {
	l := &kernels.Linear{In: in, Out: out, Add: kernels.None}
	for _, name := range names {
		l.Weights = append(l.Weights, g.matrix(p+name+".weight", g.Hidden, g.Hidden))
		l.Biases = append(l.Biases, g.optional(name != "k_proj", p+name+".bias", g.Hidden))
	}
	g.prog.Do(l)
}

// ownWords is attention over the words so far.
func (g listener) ownWords(layer int, p string, in, out kernels.Tensor) {
	n := g.Hidden
	qkv, mixed := g.value("qkv", kernels.Tokens, 3*n), g.value("mixed", kernels.Tokens, n)
	g.side(p, in, qkv, "q_proj", "k_proj", "v_proj")
	g.prog.Do(&kernels.Attention{Q: qkv, K: qkv, V: qkv, KFirst: n, VFirst: 2 * n, Out: mixed, KV: g.pages(0), Layer: layer,
		Heads: g.Heads, KVHeads: g.Heads, KeyDim: g.HeadDim, ValueDim: g.HeadDim, Scale: float32(1 / math.Sqrt(float64(g.HeadDim)))})
	g.linear(mixed, out, p+"out_proj", n, n)
}

// heardWords is attention over the rows that the encoder has made.
func (g listener) heardWords(layer int, p string, heard, in, out kernels.Tensor) {
	n := g.Hidden
	q, kv, mixed := g.value("queries", kernels.Tokens, n), g.value("of heard", kernels.Frames, 2*n), g.value("mixed", kernels.Tokens, n)
	g.side(p, in, q, "q_proj")
	g.side(p, heard, kv, "k_proj", "v_proj")
	g.prog.Do(&kernels.Attention{Q: q, K: kv, V: kv, VFirst: n, Out: mixed, KV: g.pages(1), Group: 1, Layer: layer, Cross: g.ears.Rows,
		Heads: g.Heads, KVHeads: g.Heads, KeyDim: g.HeadDim, ValueDim: g.HeadDim, Scale: float32(1 / math.Sqrt(float64(g.HeadDim)))})
	g.linear(mixed, out, p+"out_proj", n, n)
}

// whisperTower makes rows of frames of a log-mel spectrogram: two convolutions, the
// second of which halves their number, positions that were learned, and layers with
// attention both ways.
func whisperTower(g *graph) *tower {
	e := g.ears
	t := &tower{g: g, prefix: "model.encoder.", width: g.Hidden, eps: float32(g.NormEps)}
	bound := func(field string, n, high int) {
		g.want(n >= 1 && n <= high, "%s is %d; want 1 to %d", field, n, high)
	}
	bound("encoder_layers", e.Layers, maxLayers)
	bound("encoder_attention_heads", e.Heads, 1024)
	bound("encoder_ffn_dim", e.Inner, 1<<20)
	g.want(e.Heads < 1 || g.Hidden%e.Heads == 0, "encoder_attention_heads is %d; want a part of d_model %d", e.Heads, g.Hidden)
	if len(g.faults) > 0 {
		return t
	}
	t.listen()
	for i := range e.Layers {
		t.slice(Slice{Fold: 1}, t.width, func(x kernels.Tensor) kernels.Tensor {
			p := fmt.Sprintf("layers.%d.", i)
			mixed := t.attendHeard(p+"self_attn.", t.norm(x, kernels.None, p+"self_attn_layer_norm"))
			out := t.plainMLP(t.norm(x, mixed, p+"final_layer_norm"), p+"fc1", p+"fc2", e.Inner, kernels.GELU)
			t.prog.Do(&kernels.Scale{In: out, Gate: kernels.None, Add: x, Out: x})
			return x
		})
	}
	t.slice(Slice{Fold: 1}, t.width, func(x kernels.Tensor) kernels.Tensor { return t.norm(x, kernels.None, "layer_norm") })
	return t
}

// listen is the slice of the convolutions and positions.
func (t *tower) listen() {
	e := t.g.ears
	t.prog = &kernels.Program{}
	x, y := t.prog.New(kernels.Frames, e.Bins), t.prog.New(kernels.Frames, t.width)
	out, places := t.value(t.width), t.value(t.width)
	t.prog.Do(&kernels.Features{Out: x})
	t.convolve(x, y, "conv1", 1)
	t.convolve(y, out, "conv2", 2)
	t.prog.Do(&kernels.Embed{Out: places, IDs: kernels.PositionIDs, Table: t.g.table(t.prefix+"embed_positions.weight", e.Rows, t.width)})
	t.prog.Do(&kernels.Scale{In: places, Gate: kernels.None, Add: out, Out: out})
	t.prog.Do(&kernels.Output{In: out})
	t.slices = append(t.slices, Slice{Program: t.prog, Fold: 1})
}

// convolve is GELU of a convolution over three rows.
func (t *tower) convolve(in, out kernels.Tensor, name string, stride int) {
	const taps = 3
	channels := t.prog.Width(in)
	w := t.g.bind(wanted{format: wideFormat(t.g.format), out: t.width, in: taps * channels, pieces: []piece{whole(t.prefix+name+".weight", t.width, channels, taps)},
		make: func(data [][]byte, stored kernels.DType) (kernels.Source, error) {
			// Files have the taps of a channel side by side.
			src, each := kernels.Source{Type: stored}, len(data[0])/t.width
			for o := range t.width {
				src.Data = append(src.Data, transpose(data[0][o*each:(o+1)*each], channels, taps, stored.Size())...)
			}
			return src, nil
		}})
	t.prog.Do(&kernels.Convolution{In: in, Out: out, Weight: w, Bias: t.g.vector(t.prefix+name+".bias", t.width),
		Window: kernels.Window{Kernel: [2]int{taps}, Stride: [2]int{stride}, Before: [2]int{1}, After: [2]int{1}}})
	t.prog.Do(&kernels.Activate{In: out, Out: out, Kind: kernels.GELU})
}

// attendHeard is attention both ways over all that is heard. Keys have no bias.
func (t *tower) attendHeard(p string, in kernels.Tensor) kernels.Tensor {
	n, heads := t.width, t.g.ears.Heads
	qkv, mixed := t.value(3*n), t.value(n)
	l := &kernels.Linear{In: in, Out: qkv, Add: kernels.None}
	for _, name := range []string{"q_proj", "k_proj", "v_proj"} {
		l.Weights = append(l.Weights, t.g.bind(wanted{format: wideFormat(t.g.format), out: n, in: n, pieces: []piece{whole(t.prefix+p+name+".weight", n, n)}}))
		l.Biases = append(l.Biases, t.g.optional(name != "k_proj", t.prefix+p+name+".bias", n))
	}
	t.prog.Do(l)
	t.prog.Do(&kernels.Attention{Q: qkv, K: qkv, V: qkv, KFirst: n, VFirst: 2 * n, Out: mixed, Bidirectional: true,
		Heads: heads, KVHeads: heads, KeyDim: n / heads, ValueDim: n / heads, Scale: float32(1 / math.Sqrt(float64(n/heads)))})
	return t.linear(mixed, p+"out_proj", true, n, n)
}

func whisperDefaults(s *settings) {
	s.Act, s.Vocab, s.NormEps, s.Tied = "gelu", 51865, 1e-5, true
	s.ears = &hearingSettings{Width: 384, Act: "gelu", Bins: 80, Rows: 1500, Positions: 448, Layers: 4, Heads: 6, Inner: 1536, DecoderLayers: 4, DecoderHeads: 6, DecoderInner: 1536}
}

// whisperFinish: config.json has names of its own for what others call hidden_size
// and the like.
func whisperFinish(s *settings) {
	e := s.ears
	s.Hidden, s.Inner, s.Layers, s.Heads, s.KVHeads, s.HeadDim = e.Width, e.DecoderInner, e.DecoderLayers, e.DecoderHeads, 0, 0
	s.MaxPositions, s.Act, s.RopeScaling, s.RopeParameters, s.Window = e.Positions, e.Act, nil, nil, nil
}

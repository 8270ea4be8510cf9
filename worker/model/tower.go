package model

import (
	"fmt"
	"math"
	"slices"

	"roundhouse/kernels"
)

// Slice is a part of a tower that runs in one go. It reads the rows of the slice
// before it, or the picture's, as features, and its rows are its program's Output.
type Slice struct {
	Program *kernels.Program
	Windows bool // its step's sequences are the windows of Layout.Cuts; otherwise the picture
	Fold    int  // rows of the slice before it that are one row of its own
}

// tower records the slices of what sees.
type tower struct {
	g      *graph
	v      *visionSettings
	prog   *kernels.Program
	slices []Slice
	prefix string // of the names of tensors
	width  int    // columns of the stream
	rms    bool   // its norms are RMS, not layer norms
}

// towerEps is that of a tower's norms, which no file names.
const towerEps = 1e-6

// newTower finds where the tower's tensors are, and checks what all towers have
// in common.
func newTower(g *graph, width int) *tower {
	t := &tower{g: g, v: g.eyes, prefix: "visual.", width: width}
	if g.has("model.visual.patch_embed.proj.weight") {
		t.prefix = "model.visual."
	}
	v := t.v
	bound := func(field string, n, low, high int) {
		g.want(n >= low && n <= high, "vision_config: %s is %d; want %d to %d", field, n, low, high)
	}
	bound("depth", v.Depth, 1, maxLayers)
	bound("num_heads", v.Heads, 1, 1024)
	bound("in_channels", v.Channels, 3, 3)
	bound("patch_size", v.Patch, 1, 256)
	bound("temporal_patch_size", v.Temporal, 1, 16)
	bound("spatial_merge_size", v.Merge, 1, 16)
	bound("window_size", v.Window, 0, 1<<16)
	g.want(width >= 1 && width <= 1<<16 && v.Heads >= 1 && width%(4*v.Heads) == 0, "vision_config: rows of %d columns for %d heads, whose quarters turn by line and by column", width, v.Heads)
	g.want(v.Rope.Theta >= 1 && v.Rope.Theta <= 1e12, "vision_config: rope_theta is %g; want 1 to 1e12", v.Rope.Theta)
	g.want(g.ImageToken != nil && *g.ImageToken >= 0 && int(*g.ImageToken) < g.Vocab, "image_token_id is absent or not below vocab_size")
	return t
}

// slice records a slice: f makes its rows of those of the slice before.
func (t *tower) slice(windows bool, fold, width int, f func(x kernels.Tensor) kernels.Tensor) {
	t.prog = &kernels.Program{}
	x := t.value(width)
	t.prog.Do(&kernels.Features{Out: x})
	t.prog.Do(&kernels.Output{In: f(x)})
	t.slices = append(t.slices, Slice{Program: t.prog, Windows: windows, Fold: fold})
}

func (t *tower) value(width int) kernels.Tensor { return t.prog.New(kernels.Tokens, width) }

// linear is out = in · Wᵀ, and a bias where there is one. Towers keep 16 bits
// whatever the text's linears are quantised to.
func (t *tower) linear(in kernels.Tensor, name string, bias bool, out, columns int, pieces ...piece) kernels.Tensor {
	w := wanted{format: wideFormat(t.g.format), out: out, in: columns, pieces: pieces}
	if pieces == nil {
		w.pieces = []piece{whole(t.prefix+name+".weight", out, columns)}
	}
	op := &kernels.Linear{In: in, Out: t.value(out), Add: kernels.None, Weights: []kernels.Weight{t.g.bind(w)}}
	if bias {
		op.Biases = []kernels.Weight{t.g.vector(t.prefix+name+".bias", out)}
	}
	t.prog.Do(op)
	return op.Out
}

// norm is norm(x + add), and leaves the sum in x.
func (t *tower) norm(x, add kernels.Tensor, name string) kernels.Tensor {
	op := &kernels.Norm{In: x, Out: t.value(t.width), Add: kernels.None, Weight: t.g.vector(t.prefix+name+".weight", t.width), Eps: towerEps, Layer: !t.rms}
	if add != kernels.None {
		op.In, op.Add = add, x
	}
	if !t.rms {
		op.Bias = t.g.vector(t.prefix+name+".bias", t.width)
	}
	t.prog.Do(op)
	return op.Out
}

// patches is the slice that makes rows of a picture's patches: a convolution
// whose stride is its size, which is a linear.
func (t *tower) patches() {
	v := t.v
	shape := []int{t.width, v.Channels, v.Temporal, v.Patch, v.Patch}
	columns := v.Channels * v.Temporal * v.Patch * v.Patch
	t.slice(false, 1, columns, func(x kernels.Tensor) kernels.Tensor {
		return t.linear(x, "", false, t.width, columns, whole(t.prefix+"patch_embed.proj.weight", shape...))
	})
}

// layer is a slice of one layer: attention, and what mlp makes of the normed
// stream.
func (t *tower) layer(i int, windows bool, mlp func(p string, in kernels.Tensor) kernels.Tensor) {
	p := fmt.Sprintf("blocks.%d.", i)
	t.slice(windows, 1, t.width, func(x kernels.Tensor) kernels.Tensor {
		mixed := t.attend(p+"attn.", t.norm(x, kernels.None, p+"norm1"))
		out := mlp(p+"mlp.", t.norm(x, mixed, p+"norm2"))
		t.prog.Do(&kernels.Scale{In: out, Gate: kernels.None, Add: x, Out: x})
		return x
	})
}

// attend is attention both ways, with heads that turn by line and by column.
func (t *tower) attend(p string, in kernels.Tensor) kernels.Tensor {
	n, dim := t.width, t.width/max(t.v.Heads, 1)
	qkv, mixed := t.linear(in, p+"qkv", true, 3*n, n), t.value(n)
	half := make([]float64, dim/4)
	for i := range half {
		half[i] = float64(float32(1 / math.Pow(t.v.Rope.Theta, float64(4*i)/float64(dim))))
	}
	t.prog.Do(&kernels.RoPE{X: qkv, Heads: 2 * t.v.Heads, HeadDim: dim, InvFreq: slices.Concat(half, half),
		Axes: slices.Concat(make([]uint8, dim/4), slices.Repeat([]uint8{1}, dim/4))})
	t.prog.Do(&kernels.Attention{Q: qkv, K: qkv, V: qkv, KFirst: n, VFirst: 2 * n, Out: mixed, Bidirectional: true,
		Heads: t.v.Heads, KVHeads: t.v.Heads, KeyDim: dim, ValueDim: dim, Scale: float32(1 / math.Sqrt(float64(dim)))})
	return t.linear(mixed, p+"proj", true, n, n)
}

// merge ends a tower: the norm of each row, then an MLP over the rows that are
// merged, side by side.
func (t *tower) merge(out int) {
	last := t.slices[len(t.slices)-1].Program
	t.prog = last
	end := last.Ops[len(last.Ops)-1].(*kernels.Output)
	last.Ops = last.Ops[:len(last.Ops)-1]
	last.Do(&kernels.Output{In: t.norm(end.In, kernels.None, "merger.ln_q")})
	fold := t.v.Merge * t.v.Merge
	n := fold * t.width
	t.slice(false, fold, n, func(x kernels.Tensor) kernels.Tensor {
		wide := t.linear(x, "merger.mlp.0", true, n, n)
		t.prog.Do(&kernels.Activate{In: wide, Out: wide, Kind: kernels.GELU})
		return t.linear(wide, "merger.mlp.2", true, out, n)
	})
}

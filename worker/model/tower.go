package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"roundhouse/kernels"
)

// Slice is a part of a tower that runs in one go. It reads the rows of the slice
// before it, or the picture's, as features, and its rows are its program's Output.
type Slice struct {
	Program *kernels.Program
	Windows bool // its step's sequences are the windows of Layout.Cuts; otherwise the picture
	Fold    int  // rows of the slice before it that are one row of its own

	// Aside: its rows stand behind those that the tower gives, in the order of such
	// slices; the slice behind it reads what it has read.
	Aside bool
}

// tower records the slices of what sees.
type tower struct {
	g      *graph
	v      *visionSettings
	prog   *kernels.Program
	slices []Slice
	prefix string  // of the names of tensors
	width  int     // columns of the stream
	rms    bool    // its norms are RMS, not layer norms
	eps    float32 // of the norms
	places *Places // nil: it has no table, or nothing is loaded

	noQKVBias, noOutBias bool // of attention
}

// towerEps is that of a tower's norms, where no file names it.
const towerEps = 1e-6

// newTower finds where the tower's tensors are, and checks what all towers have
// in common.
func newTower(g *graph, width int) *tower {
	t := &tower{g: g, v: g.eyes, prefix: "visual.", width: width, eps: towerEps}
	if g.has("model.visual.patch_embed.proj.weight") {
		t.prefix = "model.visual."
	}
	v := t.v
	t.bound("depth", v.Depth, 1, maxLayers)
	t.bound("num_heads", v.Heads, 1, 1024)
	t.bound("in_channels", v.Channels, 3, 3)
	t.bound("patch_size", v.Patch, 1, 256)
	t.bound("temporal_patch_size", v.Temporal, 1, 16)
	t.bound("spatial_merge_size", v.Merge, 1, 16)
	t.bound("window_size", v.Window, 0, 1<<16)
	g.want(width >= 1 && width <= 1<<16 && v.Heads >= 1 && width%(4*v.Heads) == 0, "vision_config: rows of %d columns for %d heads, whose quarters turn by line and by column", width, v.Heads)
	g.want(v.Rope.Theta >= 1 && v.Rope.Theta <= 1e12, "vision_config: rope_theta is %g; want 1 to 1e12", v.Rope.Theta)
	g.want(g.ImageToken != nil && *g.ImageToken >= 0 && int(*g.ImageToken) < g.Vocab, "image_token_id is absent or not below vocab_size")
	return t
}

// bound notes a fault unless a field of vision_config is within its bounds.
func (t *tower) bound(field string, n, low, high int) {
	t.g.want(n >= low && n <= high, "vision_config: %s is %d; want %d to %d", field, n, low, high)
}

// towerActivations are those that towers are known with.
var towerActivations = map[string]kernels.Activation{"quick_gelu": kernels.QuickGELU, "gelu": kernels.GELU, "gelu_pytorch_tanh": kernels.GELUTanh, "silu": kernels.SiLU}

// activation is that of the MLPs.
func (t *tower) activation() kernels.Activation {
	kind, known := towerActivations[t.v.Act]
	t.g.want(known, "vision_config: hidden_act is %q; towers are known with %s", t.v.Act, strings.Join(slices.Sorted(maps.Keys(towerActivations)), ", "))
	return kind
}

// slice records a slice: f makes its rows of those of the slice before.
func (t *tower) slice(s Slice, width int, f func(x kernels.Tensor) kernels.Tensor) {
	t.prog = &kernels.Program{}
	x := t.value(width)
	t.prog.Do(&kernels.Features{Out: x})
	t.prog.Do(&kernels.Output{In: f(x)})
	s.Program = t.prog
	t.slices = append(t.slices, s)
}

func (t *tower) value(width int) kernels.Tensor { return t.prog.New(kernels.Tokens, width) }

// linear is out = in · Wᵀ, and a bias where there is one. Towers keep 16 bits
// whatever the text's linears are quantised to.
func (t *tower) linear(in kernels.Tensor, name string, bias bool, out, columns int) kernels.Tensor {
	return t.project(in, bias, name, wanted{out: out, in: columns, pieces: []piece{whole(t.prefix+name+".weight", out, columns)}})
}

// project is linear of a weight that is put together otherwise.
func (t *tower) project(in kernels.Tensor, bias bool, name string, w wanted) kernels.Tensor {
	w.format = wideFormat(t.g.format)
	op := &kernels.Linear{In: in, Out: t.value(w.out), Add: kernels.None, Weights: []kernels.Weight{t.g.bind(w)}}
	if bias {
		op.Biases = []kernels.Weight{t.g.vector(t.prefix+name+".bias", w.out)}
	}
	t.prog.Do(op)
	return op.Out
}

// norm is norm(x + add), and leaves the sum in x.
func (t *tower) norm(x, add kernels.Tensor, name string) kernels.Tensor {
	op := &kernels.Norm{In: x, Out: t.value(t.width), Add: kernels.None, Weight: t.g.vector(t.prefix+name+".weight", t.width), Eps: t.eps, Layer: !t.rms}
	if add != kernels.None {
		op.In, op.Add = add, x
	}
	if !t.rms {
		op.Bias = t.g.vector(t.prefix+name+".bias", t.width)
	}
	t.prog.Do(op)
	return op.Out
}

// layerNorm is that of each width columns of x.
func (t *tower) layerNorm(x kernels.Tensor, name string, width int, eps float32) kernels.Tensor {
	out := t.value(t.prog.Width(x))
	t.prog.Do(&kernels.Norm{In: x, Out: out, Add: kernels.None, Width: width, Eps: eps, Layer: true,
		Weight: t.g.vector(t.prefix+name+".weight", width), Bias: t.g.vector(t.prefix+name+".bias", width)})
	return out
}

// patches are how rows are made of a picture's patches.
type patches struct {
	Bias bool
	Norm string // of the rows; "": none
	Grid *grid  // rows that are added by place; nil: none
}

// patches is the slice that makes rows of a picture's patches: a convolution
// whose stride is its size, which is a linear.
func (t *tower) patches(p patches) {
	v := t.v
	const name = "patch_embed.proj"
	columns := v.pixels()
	width := columns
	if p.Grid != nil {
		t.table(p.Grid)
		width += t.width // the host has put the rows of the table there
	}
	t.slice(Slice{Fold: 1}, width, func(x kernels.Tensor) kernels.Tensor {
		in := x
		if p.Grid != nil {
			in = t.value(columns)
			t.prog.Do(&kernels.Columns{In: x, Out: in})
		}
		out := t.project(in, p.Bias, name, wanted{out: t.width, in: columns,
			pieces: []piece{whole(t.prefix+name+".weight", t.width, v.Channels, v.Temporal, v.Patch, v.Patch)}})
		if p.Norm != "" {
			out = t.norm(out, kernels.None, p.Norm)
		}
		if p.Grid != nil {
			places := t.value(t.width)
			t.prog.Do(&kernels.Columns{In: x, Out: places, First: columns})
			t.prog.Do(&kernels.Scale{In: places, Gate: kernels.None, Add: out, Out: out})
		}
		return out
	})
}

// layer is a slice of one layer: attention, and what mlp makes of the normed
// stream.
func (t *tower) layer(i int, windows bool, mlp func(p string, in kernels.Tensor) kernels.Tensor) {
	p := fmt.Sprintf("blocks.%d.", i)
	t.slice(Slice{Windows: windows, Fold: 1}, t.width, func(x kernels.Tensor) kernels.Tensor {
		mixed := t.attend(p+"attn.", t.norm(x, kernels.None, p+"norm1"))
		out := mlp(p+"mlp.", t.norm(x, mixed, p+"norm2"))
		t.prog.Do(&kernels.Scale{In: out, Gate: kernels.None, Add: x, Out: x})
		return x
	})
}

// plainMLP is an MLP of two linears with biases.
func (t *tower) plainMLP(in kernels.Tensor, first, last string, inner int, kind kernels.Activation) kernels.Tensor {
	wide := t.linear(in, first, true, inner, t.width)
	t.prog.Do(&kernels.Activate{In: wide, Out: wide, Kind: kind})
	return t.linear(wide, last, true, t.width, inner)
}

// gatedMLP is down(SiLU(gate) · up), of so many columns.
func (t *tower) gatedMLP(in kernels.Tensor, gate, up, down string, bias bool, width, inner int) kernels.Tensor {
	g, u := t.linear(in, gate, bias, inner, width), t.linear(in, up, bias, inner, width)
	t.prog.Do(&kernels.Scale{In: u, Gate: g, Kind: kernels.SiLU, Add: kernels.None, Out: u})
	return t.linear(u, down, bias, width, inner)
}

// attend is attention both ways, with heads that turn by line and by column.
func (t *tower) attend(p string, in kernels.Tensor) kernels.Tensor {
	n, dim := t.width, t.width/max(t.v.Heads, 1)
	qkv, mixed := t.linear(in, p+"qkv", !t.noQKVBias, 3*n, n), t.value(n)
	half := make([]float64, dim/4)
	for i := range half {
		half[i] = float64(float32(1 / math.Pow(t.v.Rope.Theta, float64(4*i)/float64(dim))))
	}
	t.prog.Do(&kernels.RoPE{X: qkv, Heads: 2 * t.v.Heads, HeadDim: dim, InvFreq: slices.Concat(half, half),
		Axes: slices.Concat(make([]uint8, dim/4), slices.Repeat([]uint8{1}, dim/4))})
	t.prog.Do(&kernels.Attention{Q: qkv, K: qkv, V: qkv, KFirst: n, VFirst: 2 * n, Out: mixed, Bidirectional: true,
		Heads: t.v.Heads, KVHeads: t.v.Heads, KeyDim: dim, ValueDim: dim, Scale: float32(1 / math.Sqrt(float64(dim)))})
	return t.linear(mixed, p+"proj", !t.noOutBias, n, n)
}

// merger makes one row of the model's of the rows that are merged: a norm, and an
// MLP over them side by side.
type merger struct {
	Norm        string
	RMS         bool // of the norm
	Folded      bool // it is over the rows side by side, not over each
	First, Last string
	Aside       bool // see Slice
}

// merge is a slice of a merger.
func (t *tower) merge(m merger) {
	fold := t.v.Merge * t.v.Merge
	n, width := fold*t.width, t.width
	if m.Folded {
		width = n
	}
	t.slice(Slice{Fold: fold, Aside: m.Aside}, n, func(x kernels.Tensor) kernels.Tensor {
		in := kernels.None
		if m.RMS {
			in = t.value(n)
			t.prog.Do(&kernels.Norm{In: x, Out: in, Add: kernels.None, Width: width, Eps: t.eps, Weight: t.g.vector(t.prefix+m.Norm+".weight", width)})
		} else {
			in = t.layerNorm(x, m.Norm, width, towerEps)
		}
		wide := t.linear(in, m.First, true, n, n)
		t.prog.Do(&kernels.Activate{In: wide, Out: wide, Kind: kernels.GELU})
		return t.linear(wide, m.Last, true, t.g.Hidden, n)
	})
}

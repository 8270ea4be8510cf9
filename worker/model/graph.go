package model

import (
	"fmt"

	"roundhouse/kernels"
)

// graph records an architecture's program. An architecture is a function of
// it; see llama.go for the simplest.
type graph struct {
	*settings
	*binder
	prog *kernels.Program
	kv   []kernels.KV // one a group

	groups  []group
	scratch map[scratchKey]kernels.Tensor
	adapted []adapted // what adapters can correct
	faults  []string  // of settings, found while recording
}

// group is layers whose KV pages share a block table, because they see the
// same tokens.
type group struct {
	spec   kernels.KVSpec
	window int
	layers []int
}

// scratchKey names a value that every layer writes anew, so that a program has
// few values however many layers there are.
type scratchKey struct {
	role  string
	rows  kernels.Rows
	width int
}

func newGraph(s *settings, b *binder, groups []group, kv []kernels.KV) *graph {
	return &graph{settings: s, binder: b, prog: &kernels.Program{}, kv: kv, groups: groups, scratch: map[scratchKey]kernels.Tensor{}}
}

// value returns the value of a role, the same one each time.
func (g *graph) value(role string, rows kernels.Rows, width int) kernels.Tensor {
	key := scratchKey{role, rows, width}
	t, ok := g.scratch[key]
	if !ok {
		t = g.prog.New(rows, width)
		g.scratch[key] = t
	}
	return t
}

// place finds a layer's group, and the layer within it.
func (g *graph) place(layer int) (group, within int) {
	for i, gr := range g.groups {
		for j, l := range gr.layers {
			if l == layer {
				return i, j
			}
		}
	}
	panic(fmt.Sprintf("BUG: layer %d is in no KV group", layer))
}

// rope returns the rotation that layers of a kind have.
func (g *graph) rope(layerType string) *rope {
	p, err := g.ropeOf(layerType)
	return g.newRope(p, err)
}

// newRope is the rotation of parameters, or none and a fault.
func (g *graph) newRope(p ropeParameters, err error) *rope {
	if err == nil {
		err = p.fits(g.HeadDim)
	}
	if err != nil {
		g.faults = append(g.faults, err.Error())
		return &rope{}
	}
	return newRope(p, g.HeadDim)
}

// axialRope is a rotation whose pairs turn by time, line or column: axes makes of
// mrope_section which of them each does, or nil.
func (g *graph) axialRope(axes func(sections []int, pairs int) []uint8) *rope {
	r := g.rope(fullAttention)
	p, err := g.ropeOf(fullAttention)
	if err != nil {
		return r // it is told already
	}
	sum := 0
	for _, n := range p.MRoPE {
		if n < 0 || n > len(r.Freqs) {
			sum = -1
			break
		}
		sum += n
	}
	if len(p.MRoPE) == 3 && sum == len(r.Freqs) {
		r.Axes = axes(p.MRoPE, len(r.Freqs))
	} else {
		g.want(false, "mrope_section is %v; want the pairs of each of 3 axes, of %d", p.MRoPE, len(r.Freqs))
	}
	return r
}

// want notes a fault unless ok: a setting that the architecture does not have.
func (g *graph) want(ok bool, format string, args ...any) {
	if !ok {
		g.faults = append(g.faults, fmt.Sprintf(format, args...))
	}
}

// wantAct notes a fault unless the activation is the one of the architecture.
func (g *graph) wantAct(found, want string) {
	g.want(found == want, "hidden_act is %q; this architecture is known with %q", found, want)
}

// root is what the names of a decoder's tensors begin with. Models that see
// images have it under a name of its own; embedding models are published
// without the head, and then without "model." too.
func (g *graph) root() string {
	roots := []string{"model."}
	if g.seeing {
		roots = []string{"model.language_model.", "language_model.model.", "model."}
	} else if g.pooling != nil {
		roots = []string{"model.", ""}
	}
	for _, r := range roots {
		if g.has(r + "embed_tokens.weight") {
			return r
		}
	}
	return roots[0]
}

// layer is what the names of a layer's tensors begin with.
func (g *graph) layer(i int) string { return fmt.Sprintf("%slayers.%d.", g.root(), i) }

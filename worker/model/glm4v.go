package model

import "roundhouse/kernels"

// glm4Seeing is GLM-4-0414's decoder with rows of pictures in place of their
// tokens, whose positions have three axes.
//
// GLM-4.1V, GLM-4.6V-Flash, Glyph.
func glm4Seeing(g *graph) {
	g.wantAct(g.Act, "silu")
	a := attention{RoPE: g.axialRope(inOrder), Bias: true}
	a.RoPE.Interleaved = true
	s := g.begin(1, 0)
	s.show()
	s.glm4Layers(a)
	s.end(0)
}

// glmTower has RMS norms, gated MLPs and a table of places between which it takes
// four rows an axis; a convolution merges rows, and a gated MLP ends it.
func glmTower(g *graph) *tower {
	v := g.eyes
	t := newTower(g, v.Hidden)
	t.rms, t.eps, t.noQKVBias, t.noOutBias = true, float32(v.NormEps), !v.AttentionBias, true
	g.wantAct(v.Act, "silu")
	g.want(v.Out == g.Hidden, "vision_config: out_hidden_size is %d, and the text's hidden_size %d", v.Out, g.Hidden)
	g.want(v.NormEps > 0 && v.NormEps < 1, "vision_config: rms_norm_eps is %g; want 0 to 1", v.NormEps)
	t.bound("intermediate_size", v.Inner, 1, 1<<20)
	t.bound("image_size", v.Image, max(v.Patch, 1), 1<<16)
	if len(g.faults) > 0 {
		return t
	}
	t.patches(patches{Bias: true, Norm: "post_conv_layernorm", Grid: &grid{Name: "embeddings.position_embedding.weight", Rows: v.Places, Cubic: true}})
	for i := range v.Depth {
		t.layer(i, false, func(p string, in kernels.Tensor) kernels.Tensor {
			return t.gatedMLP(in, p+"gate_proj", p+"up_proj", p+"down_proj", false, t.width, v.Out)
		})
	}
	t.glmMerge()
	return t
}

// glmMerge is the slice that makes the text's rows.
func (t *tower) glmMerge() {
	v := t.v
	fold := v.Merge * v.Merge
	n, out := fold*t.width, v.Out
	t.slice(Slice{Fold: fold}, n, func(x kernels.Tensor) kernels.Tensor {
		normed := t.value(n)
		t.prog.Do(&kernels.Norm{In: x, Out: normed, Add: kernels.None, Width: t.width, Eps: t.eps, Weight: t.g.vector(t.prefix+"post_layernorm.weight", t.width)})
		y := t.project(normed, true, "downsample", wanted{out: out, in: n,
			pieces: []piece{whole(t.prefix+"downsample.weight", out, t.width, v.Merge, v.Merge)},
			make: func(data [][]byte, stored kernels.DType) (kernels.Source, error) {
				// (out, columns, places) to (out, places, columns): rows stand side by side.
				each, turned := len(data[0])/out, make([]byte, 0, len(data[0]))
				for o := range out {
					turned = append(turned, transpose(data[0][o*each:(o+1)*each], t.width, fold, stored.Size())...)
				}
				return kernels.Source{Type: stored, Data: turned}, nil
			}})
		y = t.layerNorm(t.linear(y, "merger.proj", false, out, out), "merger.post_projection_norm", out, 1e-5)
		t.prog.Do(&kernels.Activate{In: y, Out: y, Kind: kernels.GELU})
		return t.gatedMLP(y, "merger.gate_proj", "merger.up_proj", "merger.down_proj", false, out, v.Inner)
	})
}

func glm4VDefaults(s *settings) {
	glmDefaults(s)
	openEyes(s, 151343)
	s.NormEps, s.MaxPositions, s.HeadDim, s.PartialRotary = 1e-5, 32768, 0, 0
	glmEyes(s)
}

func glm4VMoEDefaults(s *settings) {
	glm4MoEDefaults(s)
	openEyes(s, 151363)
	s.MaxPositions, s.AttentionBias = 65536, true
	glmEyes(s)
}

// glmEyes are the tower's.
func glmEyes(s *settings) {
	v := s.eyes
	v.Depth, v.Heads, v.Hidden, v.Out, v.Inner, v.Act = 24, 12, 1536, 4096, 13696, "silu"
	v.Image, v.NormEps = 336, 1e-5
}

// glm4VFinish counts the places; heads of the text have no norms, whatever the
// file says.
func glm4VFinish(s *settings) {
	s.QKNorm = false
	if v := s.eyes; v.Patch > 0 {
		side := v.Image / v.Patch
		v.Places = side * side
	}
}

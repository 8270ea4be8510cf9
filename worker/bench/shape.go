package bench

import (
	"fmt"
	"math"
	"math/rand/v2"

	"roundhouse/kernels/num"
)

// Shape is the size of a decoder with a tied head, and which family's layers it
// has.
type Shape struct {
	Name                  string
	Family                string // qwen2 (biases), qwen3 (norms of heads) or llama
	Hidden, Inner, Layers int
	Heads, KVHeads, Dim   int
	Vocab                 int
	Theta                 float64
}

// Shapes are those of published models, and two small ones of the same make.
// Positions turn by the plain rule in all of them.
var Shapes = []Shape{
	{Name: "qwen3-0.6b", Family: "qwen3", Hidden: 1024, Inner: 3072, Layers: 28, Heads: 16, KVHeads: 8, Dim: 128, Vocab: 151936, Theta: 1e6},
	{Name: "qwen2.5-0.5b", Family: "qwen2", Hidden: 896, Inner: 4864, Layers: 24, Heads: 14, KVHeads: 2, Dim: 64, Vocab: 151936, Theta: 1e6},
	{Name: "llama-3.2-1b", Family: "llama", Hidden: 2048, Inner: 8192, Layers: 16, Heads: 32, KVHeads: 8, Dim: 64, Vocab: 128256, Theta: 5e5},
	{Name: "short", Family: "qwen3", Hidden: 1024, Inner: 3072, Layers: 5, Heads: 16, KVHeads: 8, Dim: 128, Vocab: 16384, Theta: 1e6},
	{Name: "tiny", Family: "qwen3", Hidden: 256, Inner: 512, Layers: 2, Heads: 4, KVHeads: 2, Dim: 64, Vocab: 1024, Theta: 1e6},
}

// Find is the shape of a name.
func Find(name string) (*Shape, error) {
	for i := range Shapes {
		if Shapes[i].Name == name {
			return &Shapes[i], nil
		}
	}
	return nil, fmt.Errorf("no shape %q", name)
}

// role is what a tensor is, where that matters to how it is written.
type role uint8

const (
	matrix role = iota
	turned      // queries or keys, whose rows GGUF's llama has in another order
	ones        // a norm's weight
	bias
)

// tensor is one weight: its name in each kind of file, and its rows and
// columns; a vector has one row.
type tensor struct {
	safe, gguf string
	rows, cols int
	role       role
}

// tensors lists the weights of a shape.
func (s *Shape) tensors() []tensor {
	q, kv := s.Heads*s.Dim, s.KVHeads*s.Dim
	all := []tensor{{"model.embed_tokens.weight", "token_embd.weight", s.Vocab, s.Hidden, matrix}}
	for i := range s.Layers {
		safe, gguf := fmt.Sprintf("model.layers.%d.", i), fmt.Sprintf("blk.%d.", i)
		layer := []tensor{
			{"input_layernorm.weight", "attn_norm.weight", 1, s.Hidden, ones},
			{"self_attn.q_proj.weight", "attn_q.weight", q, s.Hidden, turned},
			{"self_attn.k_proj.weight", "attn_k.weight", kv, s.Hidden, turned},
			{"self_attn.v_proj.weight", "attn_v.weight", kv, s.Hidden, matrix},
			{"self_attn.o_proj.weight", "attn_output.weight", s.Hidden, q, matrix},
			{"post_attention_layernorm.weight", "ffn_norm.weight", 1, s.Hidden, ones},
			{"mlp.gate_proj.weight", "ffn_gate.weight", s.Inner, s.Hidden, matrix},
			{"mlp.up_proj.weight", "ffn_up.weight", s.Inner, s.Hidden, matrix},
			{"mlp.down_proj.weight", "ffn_down.weight", s.Hidden, s.Inner, matrix},
		}
		switch s.Family {
		case "qwen3":
			layer = append(layer, tensor{"self_attn.q_norm.weight", "attn_q_norm.weight", 1, s.Dim, ones},
				tensor{"self_attn.k_norm.weight", "attn_k_norm.weight", 1, s.Dim, ones})
		case "qwen2":
			layer = append(layer, tensor{"self_attn.q_proj.bias", "attn_q.bias", 1, q, bias},
				tensor{"self_attn.k_proj.bias", "attn_k.bias", 1, kv, bias}, tensor{"self_attn.v_proj.bias", "attn_v.bias", 1, kv, bias})
		}
		for _, t := range layer {
			all = append(all, tensor{safe + t.safe, gguf + t.gguf, t.rows, t.cols, t.role})
		}
	}
	return append(all, tensor{"model.norm.weight", "output_norm.weight", 1, s.Hidden, ones})
}

// values fills x with the weights of row r of tensor i: the same in every file,
// and exact in bfloat16.
func (s *Shape) values(x []float32, i, r int, t *tensor) {
	if t.role == ones {
		for k := range x {
			x[k] = 1
		}
		return
	}
	rng := rand.NewPCG(uint64(i)<<32|uint64(r), 17)
	scale := float32(math.Sqrt(3/float64(t.cols))) / (1 << 15)
	for k := 0; k < len(x); k += 4 {
		word := rng.Uint64()
		for j := range min(4, len(x)-k) {
			x[k+j] = num.RoundBF16(float32(int16(word>>(16*j))) * scale)
		}
	}
}

// each calls write with every row of every tensor, in the order that order
// gives; nil is ascending.
func (s *Shape) each(all []tensor, order func(t *tensor, row int) int, write func(*tensor, []float32) error) error {
	for i := range all {
		x := make([]float32, all[i].cols)
		for r := range all[i].rows {
			if order != nil {
				r = order(&all[i], r)
			}
			s.values(x, i, r, &all[i])
			if err := write(&all[i], x); err != nil {
				return err
			}
		}
	}
	return nil
}

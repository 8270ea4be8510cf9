package bench

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"roundhouse/kernels/num"
)

// Shape is the size of a Qwen3-style decoder with a tied head.
type Shape struct {
	Name                  string
	Hidden, Inner, Layers int
	Heads, KVHeads, Dim   int
	Vocab                 int
}

// Shapes are those of published models.
var Shapes = []Shape{
	{Name: "qwen3-0.6b", Hidden: 1024, Inner: 3072, Layers: 28, Heads: 16, KVHeads: 8, Dim: 128, Vocab: 151936},
	{Name: "tiny", Hidden: 256, Inner: 512, Layers: 2, Heads: 4, KVHeads: 2, Dim: 64, Vocab: 1024},
}

// tensor is one weight: its name in each kind of file, and its rows and
// columns; a norm has one row.
type tensor struct {
	safe, gguf string
	rows, cols int
}

// tensors lists the weights of a shape.
func (s *Shape) tensors() []tensor {
	q, kv := s.Heads*s.Dim, s.KVHeads*s.Dim
	all := []tensor{{"model.embed_tokens.weight", "token_embd.weight", s.Vocab, s.Hidden}}
	for i := range s.Layers {
		safe, gguf := fmt.Sprintf("model.layers.%d.", i), fmt.Sprintf("blk.%d.", i)
		for _, t := range []tensor{
			{"input_layernorm", "attn_norm", 1, s.Hidden},
			{"self_attn.q_proj", "attn_q", q, s.Hidden},
			{"self_attn.k_proj", "attn_k", kv, s.Hidden},
			{"self_attn.v_proj", "attn_v", kv, s.Hidden},
			{"self_attn.q_norm", "attn_q_norm", 1, s.Dim},
			{"self_attn.k_norm", "attn_k_norm", 1, s.Dim},
			{"self_attn.o_proj", "attn_output", s.Hidden, q},
			{"post_attention_layernorm", "ffn_norm", 1, s.Hidden},
			{"mlp.gate_proj", "ffn_gate", s.Inner, s.Hidden},
			{"mlp.up_proj", "ffn_up", s.Inner, s.Hidden},
			{"mlp.down_proj", "ffn_down", s.Hidden, s.Inner},
		} {
			all = append(all, tensor{safe + t.safe + ".weight", gguf + t.gguf + ".weight", t.rows, t.cols})
		}
	}
	return append(all, tensor{"model.norm.weight", "output_norm.weight", 1, s.Hidden})
}

// values fills x with the weights of row r of tensor i: the same in every file,
// and exact in bfloat16.
func (s *Shape) values(x []float32, i, r int, t *tensor) {
	if t.rows == 1 {
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

// WriteSafetensors makes a directory as Hugging Face has it: config.json and
// weights in bfloat16.
func (s *Shape) WriteSafetensors(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	config, err := json.MarshalIndent(map[string]any{
		"architectures": []string{"Qwen3ForCausalLM"}, "model_type": "qwen3", "attention_bias": false, "head_dim": s.Dim,
		"hidden_act": "silu", "hidden_size": s.Hidden, "intermediate_size": s.Inner, "max_position_embeddings": 40960,
		"num_attention_heads": s.Heads, "num_hidden_layers": s.Layers, "num_key_value_heads": s.KVHeads, "rms_norm_eps": 1e-6,
		"rope_theta": 1e6, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "vocab_size": s.Vocab,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644); err != nil {
		return err
	}
	header, at := map[string]any{}, 0
	all := s.tensors()
	for _, t := range all {
		shape := []int{t.rows, t.cols}
		if t.rows == 1 {
			shape = []int{t.cols}
		}
		end := at + 2*t.rows*t.cols
		header[t.safe] = map[string]any{"dtype": "BF16", "shape": shape, "data_offsets": []int{at, end}}
		at = end
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "model.safetensors"), func(w io.Writer) error {
		if err := binary.Write(w, binary.LittleEndian, uint64(len(text))); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		return s.each(all, func(_ *tensor, x []float32) error {
			_, err := w.Write(bf16Bytes(x))
			return err
		})
	})
}

// each calls write with every row of every tensor, in order.
func (s *Shape) each(all []tensor, write func(*tensor, []float32) error) error {
	for i := range all {
		x := make([]float32, all[i].cols)
		for r := range all[i].rows {
			s.values(x, i, r, &all[i])
			if err := write(&all[i], x); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeFile writes a whole file through a buffer.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

func bf16Bytes(x []float32) []byte {
	b := make([]byte, 0, 2*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint16(b, num.BF16(v))
	}
	return b
}

package bench

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"roundhouse/kernels/num"
)

// positions is what a model of random weights claims to have been made for.
const positions = 40960

// WriteSafetensors makes a directory as Hugging Face has it: config.json and
// weights in bfloat16.
func (s *Shape) WriteSafetensors(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	class := map[string]string{"qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "llama": "LlamaForCausalLM"}[s.Family]
	config, err := json.MarshalIndent(map[string]any{
		"architectures": []string{class}, "model_type": s.Family, "attention_bias": false, "head_dim": s.Dim,
		"hidden_act": "silu", "hidden_size": s.Hidden, "intermediate_size": s.Inner, "max_position_embeddings": positions,
		"num_attention_heads": s.Heads, "num_hidden_layers": s.Layers, "num_key_value_heads": s.KVHeads, "rms_norm_eps": 1e-6,
		"rope_theta": s.Theta, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "vocab_size": s.Vocab,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := s.writeWords(dir); err != nil {
		return err
	}
	header, at := map[string]any{}, 0
	all := s.tensors()
	for _, t := range all {
		shape := []int{t.rows, t.cols}
		if t.role >= ones {
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
	err = writeFile(filepath.Join(dir, "model.safetensors"), func(w io.Writer) error {
		if err := binary.Write(w, binary.LittleEndian, uint64(len(text))); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		return s.each(all, nil, func(_ *tensor, x []float32) error {
			_, err := w.Write(bf16Bytes(x))
			return err
		})
	})
	if err != nil {
		return err
	}
	// Last: a folder that has it is whole.
	return os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644)
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

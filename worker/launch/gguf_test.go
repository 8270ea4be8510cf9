package launch

import (
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"roundhouse/kernels"
	"roundhouse/kernels/num"
	"roundhouse/worker/demo"
	"roundhouse/worker/gguf"
	"roundhouse/worker/weights"
)

// demoParts are the GGUF names of what a layer of the demonstration model has.
var demoParts = strings.NewReplacer("model.layers.", "blk.", "input_layernorm", "attn_norm", "post_attention_layernorm", "ffn_norm",
	"self_attn.q_proj", "attn_q", "self_attn.k_proj", "attn_k", "self_attn.v_proj", "attn_v", "self_attn.o_proj", "attn_output",
	"self_attn.q_norm", "attn_q_norm", "self_attn.k_norm", "attn_k_norm", "mlp.gate_proj", "ffn_gate", "mlp.up_proj", "ffn_up", "mlp.down_proj", "ffn_down",
	"model.embed_tokens", "token_embd", "model.norm", "output_norm")

// demoGGUF writes the demonstration model as a GGUF file, its matrices as kind and
// the embedding, which is its head as well, as another.
func demoGGUF(t *testing.T, kind, embedding gguf.Type) string {
	t.Helper()
	return writeGGUF(t, demoValues(t), demoContents(t, kind, embedding))
}

func writeGGUF(t *testing.T, values map[string]gguf.Value, contents []gguf.Content) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "demo.gguf")
	if err := os.WriteFile(path, gguf.Encode(values, contents), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func demoContents(t *testing.T, kind, embedding gguf.Type) []gguf.Content {
	t.Helper()
	set, err := weights.OpenFS(demo.FS)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	var contents []gguf.Content
	for _, name := range set.Names() {
		x := set.Lookup(name)
		data, err := x.Data()
		if err != nil {
			t.Fatal(err)
		}
		numbers := make([]float32, x.Elements())
		num.Decode(numbers, kernels.BF16, data, 0)
		c := gguf.Content{Name: demoParts.Replace(name), Type: kind, Shape: x.Shape}
		switch {
		case len(x.Shape) == 1:
			c.Type = gguf.F32
		case c.Name == "token_embd.weight":
			c.Type = embedding
		}
		c.Data = encodeGGUF(c.Type, numbers)
		contents = append(contents, c)
	}
	return contents
}

// mixedGGUF writes the demonstration model as a mixture: each layer's MLP three times,
// of which a router of zeros chooses two. Their sum is what the one MLP gives.
func mixedGGUF(t *testing.T, kind gguf.Type) string {
	t.Helper()
	values := map[string]gguf.Value{"qwen3moe.expert_count": uint32(3), "qwen3moe.expert_used_count": uint32(2)}
	for key, v := range demoValues(t) {
		values[strings.Replace(key, "qwen3.", "qwen3moe.", 1)] = v
	}
	values["general.architecture"], values["qwen3moe.expert_feed_forward_length"] = "qwen3moe", values["qwen3moe.feed_forward_length"]
	var contents []gguf.Content
	for _, c := range demoContents(t, kind, kind) {
		for _, part := range []string{".ffn_gate.", ".ffn_up.", ".ffn_down."} {
			if strings.Contains(c.Name, part) {
				c.Name, c.Shape = strings.Replace(c.Name, part, strings.TrimSuffix(part, ".")+"_exps.", 1), append([]int{3}, c.Shape...)
				c.Data = slices.Repeat(c.Data, 3)
			}
		}
		if layer, ok := strings.CutSuffix(c.Name, ".ffn_norm.weight"); ok {
			hidden := c.Shape[0]
			contents = append(contents, gguf.Content{Name: layer + ".ffn_gate_inp.weight", Type: gguf.F32, Shape: []int{3, hidden}, Data: make([]byte, 12*hidden)})
		}
		contents = append(contents, c)
	}
	return writeGGUF(t, values, contents)
}

// encodeGGUF quantises numbers.
func encodeGGUF(kind gguf.Type, x []float32) []byte {
	le := binary.LittleEndian
	var b []byte
	switch kind {
	case gguf.F32:
		b, _ = binary.Append(nil, le, x)
	case gguf.BF16:
		for _, v := range x {
			b = le.AppendUint16(b, num.BF16(v))
		}
	case gguf.Q8_0:
		var q [32]int8
		for ; len(x) > 0; x = x[32:] {
			b = le.AppendUint16(b, num.F16(num.Int8Row(q[:], x[:32])))
			for _, c := range q {
				b = append(b, byte(c))
			}
		}
	case gguf.Q4_0:
		var q [32]uint8
		for ; len(x) > 0; x = x[32:] {
			b = le.AppendUint16(b, num.SymInt4(q[:], x[:32]))
			for i := range 16 {
				b = append(b, q[i]|q[i+16]<<4)
			}
		}
	}
	return b
}

// demoValues is what the demonstration model's files say, as a header.
func demoValues(t *testing.T) map[string]gguf.Value {
	t.Helper()
	read := func(name string, into any) {
		data, err := fs.ReadFile(demo.FS, name)
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var config map[string]any
	var words struct {
		Added []struct {
			ID      int32
			Content string
		} `json:"added_tokens"`
		Model struct {
			Vocab  map[string]int32
			Merges []any
		}
	}
	var more struct {
		Template string `json:"chat_template"`
	}
	read("config.json", &config)
	read("tokenizer.json", &words)
	read("tokenizer_config.json", &more)
	kinds := slices.Repeat([]int32{1}, len(words.Model.Vocab)+len(words.Added))
	for _, a := range words.Added {
		words.Model.Vocab[a.Content], kinds[a.ID] = a.ID, 3
	}
	var merges []string
	for _, m := range words.Model.Merges {
		if pair, ok := m.([]any); ok {
			m = pair[0].(string) + " " + pair[1].(string)
		}
		merges = append(merges, m.(string))
	}
	integer := func(field string) uint32 { return uint32(config[field].(float64)) }
	real := func(field string) float32 { return float32(config[field].(float64)) }
	return map[string]gguf.Value{
		"general.architecture": "qwen3", "general.name": "demo", "general.type": "model",
		"qwen3.block_count": integer("num_hidden_layers"), "qwen3.context_length": integer("max_position_embeddings"),
		"qwen3.embedding_length": integer("hidden_size"), "qwen3.feed_forward_length": integer("intermediate_size"),
		"qwen3.attention.head_count": integer("num_attention_heads"), "qwen3.attention.head_count_kv": integer("num_key_value_heads"),
		"qwen3.attention.key_length": integer("head_dim"), "qwen3.attention.value_length": integer("head_dim"),
		"qwen3.attention.layer_norm_rms_epsilon": real("rms_norm_eps"), "qwen3.rope.freq_base": real("rope_theta"),
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.merges": merges,
		"tokenizer.ggml.tokens":       slices.SortedFunc(maps.Keys(words.Model.Vocab), func(a, b string) int { return int(words.Model.Vocab[a] - words.Model.Vocab[b]) }),
		"tokenizer.ggml.eos_token_id": integer("eos_token_id"), "tokenizer.chat_template": more.Template,
	}
}

// chats asks questions, greedy, and returns the answers.
func chats(t *testing.T, url string, list []question) []string {
	t.Helper()
	var out []string
	for _, q := range list {
		var a struct {
			Choices []struct {
				Message struct{ Content string }
				Finish  string `json:"finish_reason"`
			}
		}
		body := map[string]any{"messages": []map[string]string{{"role": "user", "content": q.Question}}, "temperature": 0, "max_tokens": 200}
		if err := postJSON(url+"/v1/chat/completions", body, &a); err != nil {
			t.Fatal(err)
		}
		out = append(out, a.Choices[0].Finish+" "+a.Choices[0].Message.Content)
	}
	return out
}

// TestGGUF serves GGUF files of the demonstration model, tokenizer and template
// from the file: the same answers from the same weights, alone and as experts, and
// right ones from blocks of eight and of four bits.
func TestGGUF(t *testing.T) {
	var list []question
	for i, q := range questions(t) {
		if i%20 == 0 && len(q.Answer) < 100 {
			list = append(list, q)
		}
	}
	want := chats(t, demoServer(t, "--max-num-seqs", "8").URL, list)
	of := func(kind gguf.Type) []string {
		return chats(t, demoServer(t, "--max-num-seqs", "8", "--model", demoGGUF(t, kind, kind)).URL, list)
	}
	if got := of(gguf.BF16); !slices.Equal(got, want) {
		t.Errorf("the file of the same weights answers %q; want %q", got, want)
	}
	if got := chats(t, demoServer(t, "--max-num-seqs", "8", "--model", mixedGGUF(t, gguf.BF16)).URL, list); !slices.Equal(got, want) {
		t.Errorf("the same weights as experts answer %q; want %q", got, want)
	}
	wrong := func(answers []string) (n int) {
		for i, a := range answers {
			if a != "stop "+list[i].Answer {
				n++
			}
		}
		return n
	}
	for kind, more := range map[gguf.Type]int{gguf.Q8_0: 2, gguf.Q4_0: 4} {
		got, most := wrong(of(kind)), wrong(want)+more
		t.Logf("%v: %d of %d answers are wrong", kind, got, len(list))
		if got > most {
			t.Errorf("%v: %d of %d answers are wrong; want at most %d", kind, got, len(list), most)
		}
	}
}

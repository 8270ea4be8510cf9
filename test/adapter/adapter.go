package adapter

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// Write writes an adapter of random numbers, for some linears of every layer, to a
// folder of the test's and returns it. Equal seeds give equal adapters.
func Write(t testing.TB, seed uint64, rank int, scale float64) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	header, data := map[string]any{}, []byte(nil)
	tensor := func(name string, rows, columns int, scale float64) {
		from := len(data)
		for range rows * columns {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(rng.NormFloat64()*scale)))
		}
		header[name] = map[string]any{"dtype": "F32", "shape": []int{rows, columns}, "data_offsets": []int{from, len(data)}}
	}
	for layer := range 5 {
		for _, m := range []struct {
			name    string
			out, in int
		}{{"self_attn.v_proj", 128, 256}, {"mlp.down_proj", 256, 512}} {
			name := fmt.Sprintf("base_model.model.model.layers.%d.%s", layer, m.name)
			tensor(name+".lora_A.weight", rank, m.in, 1/math.Sqrt(float64(m.in)))
			tensor(name+".lora_B.weight", m.out, rank, scale/math.Sqrt(float64(rank)))
		}
	}
	head, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"adapter_model.safetensors": append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), data...),
		"adapter_config.json":       fmt.Appendf(nil, `{"peft_type":"LORA","r":%d,"lora_alpha":%d,"target_modules":["v_proj","down_proj"]}`, rank, 2*rank),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

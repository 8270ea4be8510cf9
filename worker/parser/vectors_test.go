package parser

import (
	"encoding/json"
	"math/rand"
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestVectors holds the parsers to what vLLM's own say of the same outputs, and
// to saying so however an output is cut. testdata/vectors.py has vLLM say it.
func TestVectors(t *testing.T) {
	var vectors []struct {
		Kind, Parser, Text, Reasoning, Content string
		Calls                                  [][2]string
		Error                                  string
	}
	var outputs struct {
		Tools []struct {
			Name       string
			Parameters json.RawMessage
		}
	}
	for name, into := range map[string]any{"vectors": &vectors, "outputs": &outputs} {
		data, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatal(err)
		}
	}
	var tools []Tool
	for _, f := range outputs.Tools {
		tools = append(tools, Tool{f.Name, f.Parameters})
	}
	if len(vectors) < 70 {
		t.Fatalf("%d vectors", len(vectors))
	}
	for _, v := range vectors { // vLLM has these parsers under a second name
		if second := map[string]string{"hermes": "qwen3_json", "llama3_json": "llama4_json"}[v.Parser]; second != "" {
			v.Parser = second
			vectors = append(vectors, v)
		}
	}
	r := rand.New(rand.NewSource(1))
	for _, v := range vectors {
		o := Options{Reasoning: v.Parser}
		if strings.HasPrefix(v.Kind, "tools") {
			o = Options{Tools: v.Parser, Offered: tools}
		}
		for range 20 {
			w := parse(t, o, split(r, v.Text)...)
			same := w.reasoning == v.Reasoning && w.content == v.Content && len(w.calls) == len(v.Calls)
			for i := 0; same && i < len(w.calls); i++ {
				var got, want any
				same = w.calls[i].Name == v.Calls[i][0] && json.Unmarshal([]byte(w.calls[i].Arguments), &got) == nil &&
					json.Unmarshal([]byte(v.Calls[i][1]), &want) == nil && reflect.DeepEqual(got, want)
			}
			if !same || v.Error != "" {
				t.Errorf("%s: %q\ngives %s\nvLLM: reasoning %q content %q calls %q %s", v.Parser, v.Text, w, v.Reasoning, v.Content, v.Calls, v.Error)
				break
			}
		}
	}
}

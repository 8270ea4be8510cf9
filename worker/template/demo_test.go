package template

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"
)

// rendering is one of the golden file's chat templates.
type rendering struct {
	Messages []map[string]any `json:"messages"`
	Add      bool             `json:"add_generation_prompt"`
	Text     string           `json:"text"`
}

// demonstration reads the template and the renderings of the model that is
// built in.
func demonstration(t *testing.T) (string, []rendering) {
	t.Helper()
	data, err := os.ReadFile("../demo/model/tokenizer_config.json")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Template string `json:"chat_template"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("../demo/testdata/golden.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Renderings []rendering `json:"chat_template"`
	}
	if err := json.NewDecoder(z).Decode(&golden); err != nil {
		t.Fatal(err)
	}
	return config.Template, golden.Renderings
}

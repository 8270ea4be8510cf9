package tokenizer

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestDemonstrationModel compares with the golden file of the model that is
// built in.
func TestDemonstrationModel(t *testing.T) {
	tok := load(t, "../demo/model/tokenizer.json")
	var golden struct {
		Tokenizer []struct {
			Text    string  `json:"text"`
			IDs     []int32 `json:"ids"`
			Decoded string  `json:"decoded"`
			Plain   string  `json:"decoded_without_special"`
		} `json:"tokenizer"`
	}
	if err := json.Unmarshal(readGzip(t, "../demo/testdata/golden.json.gz"), &golden); err != nil {
		t.Fatal(err)
	}
	for _, c := range golden.Tokenizer {
		if ids := tok.Encode(c.Text, EncodeOptions{ParseSpecial: true}); !slices.Equal(ids, c.IDs) {
			t.Errorf("%q: %v; want %v", c.Text, ids, c.IDs)
		}
		if s := tok.Decode(c.IDs, false); s != c.Decoded {
			t.Errorf("%v decodes to %q; want %q", c.IDs, s, c.Decoded)
		}
		if s := stream(tok, c.IDs, true); s != c.Plain {
			t.Errorf("%v streams as %q; want %q", c.IDs, s, c.Plain)
		}
	}
	if len(golden.Tokenizer) < 500 {
		t.Errorf("the golden file has %d strings", len(golden.Tokenizer))
	}
}

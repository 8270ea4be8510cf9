package launch

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestTokenizerInfo holds /tokenizer_info to vLLM's form: tokens by their spelling, the
// chat template in use, no paths; and no route without the flag.
func TestTokenizerInfo(t *testing.T) {
	get := func(args ...string) (int, map[string]any) {
		t.Helper()
		res, err := http.Get(demoServer(t, args...).URL + "/tokenizer_info")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		var info map[string]any
		if err := json.NewDecoder(res.Body).Decode(&info); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, info
	}
	if code, _ := get(); code != http.StatusNotFound {
		t.Errorf("without the flag: %d", code)
	}
	code, info := get("--enable-tokenizer-info-endpoint")
	template, _ := info["chat_template"].(string)
	added, _ := info["added_tokens_decoder"].(map[string]any)
	if code != http.StatusOK || info["eos_token"] != "<|im_end|>" || info["bos_token"] != nil || added["1534"] != "<|im_start|>" || !strings.Contains(template, "add_generation_prompt") || info["tokenizer_class"] == nil {
		t.Errorf("%d %v", code, info)
	}
	w := textFiles{eos: "</s>", info: map[string]any{"vocab_file": "/home/someone/vocab.json", "eos_token": map[string]any{"content": "</s>", "lstrip": false}}}
	told := (&Options{Listening: Listening{TokenizerInfo: true}}).tokenizerInfo(&w)
	if _, ok := told["vocab_file"]; ok || told["eos_token"] != "</s>" || len(told) != 2 {
		t.Errorf("%v", told)
	}
}

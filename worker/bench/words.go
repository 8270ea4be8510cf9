package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// merges is what a vocabulary of bytes needs to be taken for one of byte pairs.
var merges = []string{"a b"}

// words is a vocabulary: the bytes as byte-level tokenizers write them, the one
// merge, and names that no text has.
func (s *Shape) words() []string {
	all := make([]string, 0, s.Vocab)
	beyond := rune(256)
	for b := range rune(256) {
		r := b
		if b < '!' || b > '~' && b < 0xa1 || b == 0xad {
			r, beyond = beyond, beyond+1
		}
		all = append(all, string(r))
	}
	all = append(all, "ab")
	for i := len(all); i < s.Vocab; i++ {
		all = append(all, fmt.Sprintf("<%d>", i))
	}
	return all
}

// writeWords writes tokenizer.json.
func (s *Shape) writeWords(dir string) error {
	vocab := map[string]int{}
	for i, w := range s.words() {
		vocab[w] = i
	}
	level := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true}
	text, err := json.Marshal(map[string]any{
		"version": "1.0", "added_tokens": []any{}, "pre_tokenizer": level, "decoder": level,
		"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": merges},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "tokenizer.json"), text, 0o644)
}

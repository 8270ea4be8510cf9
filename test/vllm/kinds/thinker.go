package kinds

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// The tokens that become marks: a digit, which a count comes to after a while, and
// a name, which it does not.
const (
	thoughtBegin, beginWord = 1532, "Finn"
	thoughtEnd, endWord     = 24, "9"
)

// Thinker writes the demonstration model, which has no marks of thoughts, to a
// folder with such marks: the digit 9 becomes "</think>". Who counts from 10 by 10
// so has a thought before 90 and an answer behind it.
func Thinker(model, dir string) error {
	for _, name := range []string{"config.json", "generation_config.json", "model.safetensors"} {
		text, err := os.ReadFile(filepath.Join(model, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	mark := func(id int, content string) object {
		return object{"id": id, "content": content, "lstrip": false, "rstrip": false, "normalized": false, "single_word": false, "special": false}
	}
	marks := []object{mark(thoughtEnd, "</think>"), mark(thoughtBegin, "<think>")}
	err := rewrite(model, dir, "tokenizer.json", func(t object) {
		m := t["model"].(object)
		words := m["vocab"].(object)
		delete(words, endWord)
		delete(words, beginWord)
		words["<think>"], words["</think>"] = thoughtBegin, thoughtEnd
		merges := m["merges"].([]any)
		m["merges"] = merges[:len(merges)-1] // the last made the name
		list := []any{marks[0], marks[1]}
		t["added_tokens"] = append(list, t["added_tokens"].([]any)...)
	})
	if err != nil {
		return err
	}
	return rewrite(model, dir, "tokenizer_config.json", func(t object) {
		for _, m := range marks {
			t["added_tokens_decoder"].(object)[fmt.Sprint(m["id"])] = m
		}
	})
}

// rewrite copies a file of JSON from one folder to another, changed.
func rewrite(from, to, name string, change func(object)) error {
	text, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		return err
	}
	var t object
	if err := json.Unmarshal(text, &t); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	change(t)
	if text, err = json.Marshal(t); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, name), text, 0o644)
}

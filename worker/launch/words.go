package launch

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"

	"roundhouse/worker/model"
	"roundhouse/worker/template"
)

// asksNone finds a template that tells a message without content, which only
// calls tools, from one whose content is empty.
var asksNone = regexp.MustCompile(`content['"]?[\])]*\s+is\s+(not\s+)?none\b`)

// fillContents gives messages without content one: none for a template that
// asks, and an empty text for one that adds it to other text.
func fillContents(vars map[string]any, content any) {
	messages, _ := vars["messages"].([]any)
	for _, m := range messages {
		if d, ok := m.(*template.Dict); ok {
			if has, _ := d.Get("content"); has == nil {
				d.Set("content", content)
			}
		}
	}
}

// wordsOf reads the text side of a model, or of the one that --tokenizer names.
func wordsOf(o *Options, name string, folder fs.FS, m *model.Model) (words, error) {
	if o.Tokenizer != "" {
		dir, err := findModel(o.Tokenizer, "", o.Caches)
		if err != nil {
			return words{}, fmt.Errorf("--tokenizer: %w", err)
		}
		w, err := loadWords(os.DirFS(dir), o.Tokenizer, o.ChatTemplate)
		if n := m.Config().Vocab; err == nil && w.tokenizer.Size() > n {
			return w, fmt.Errorf("--tokenizer %s has %d tokens, and the model %d", o.Tokenizer, w.tokenizer.Size(), n)
		}
		return w, err
	}
	if f := m.GGUF(); f != nil {
		return loadGGUFWords(f, name, o.ChatTemplate)
	}
	return loadWords(folder, name, o.ChatTemplate)
}

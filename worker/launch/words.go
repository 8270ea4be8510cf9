package launch

import (
	"fmt"
	"io/fs"
	"os"

	"roundhouse/worker/model"
)

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

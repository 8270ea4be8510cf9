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

// fillThinking gives an assistant's messages their reasoning under the name
// that gpt-oss's template has for it. The template takes it beside calls only
// where the message has no content.
func fillThinking(vars map[string]any) {
	messages, _ := vars["messages"].([]any)
	for _, m := range messages {
		d, ok := m.(*template.Dict)
		if !ok {
			continue
		}
		if role, _ := d.Get("role"); role != "assistant" {
			continue
		}
		_, has := d.Get("thinking")
		reasoning, _ := d.Get("reasoning")
		if reasoning == nil {
			reasoning, _ = d.Get("reasoning_content")
		}
		_, calls := d.Get("tool_calls")
		content, _ := d.Get("content")
		if !has && reasoning != nil && (!calls || content == nil || content == "") {
			d.Set("thinking", reasoning)
		}
	}
}

// textFilesOf reads the text side of a model, or of the one that --tokenizer names.
func textFilesOf(o *Options, name string, folder fs.FS, m *model.Model) (textFiles, error) {
	if o.Tokenizer != "" {
		dir, err := findModel(o.Tokenizer, o.TokenizerRevision, o.Caches)
		if err != nil {
			return textFiles{}, fmt.Errorf("--tokenizer: %w", err)
		}
		w, err := loadTextFiles(os.DirFS(dir), o.Tokenizer, o.ChatTemplate)
		if n := m.Config().Vocab; err == nil && w.tokenizer.Size() > n {
			return w, fmt.Errorf("--tokenizer %s has %d tokens, and the model %d", o.Tokenizer, w.tokenizer.Size(), n)
		}
		return w, err
	}
	if f := m.GGUF(); f != nil {
		return loadGGUFText(f, name, o.ChatTemplate)
	}
	return loadTextFiles(folder, name, o.ChatTemplate)
}

// reading is the text side of a model while it is read, beside the weights: that
// takes one thread a tenth of a second, and as long again for the forms of answers.
type reading struct {
	done chan struct{} // closed at the end
	textFiles
	err error
}

// readTextFiles begins to read.
func readTextFiles(o Options, name string, folder fs.FS, m *model.Model) *reading {
	r := &reading{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		if r.textFiles, r.err = textFilesOf(&o, name, folder, m); r.err == nil {
			cfg := m.Config()
			r.compiler = newCompiler(r.tokenizer, cfg.Vocab, cfg.EOS)
			r.compiler.compact = o.CompactJSON
		}
	}()
	return r
}

// wait returns what was read once all of it was.
func (r *reading) wait() (textFiles, error) {
	<-r.done
	return r.textFiles, r.err
}

// failed returns why nothing more will be read, if that is known by now.
func (r *reading) failed() error {
	select {
	case <-r.done:
		return r.err
	default:
		return nil
	}
}

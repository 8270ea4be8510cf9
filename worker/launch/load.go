package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"roundhouse/worker/gguf"
	"roundhouse/worker/template"
	"roundhouse/worker/tokenizer"
	"roundhouse/worker/weights"
)

// textFiles are the text side of a model's folder.
type textFiles struct {
	tokenizer *tokenizer.Tokenizer
	template  func(map[string]any) ([]tokenizer.Segment, error) // nil: none
	source    string                                            // of the template
	bos, eos  string
	labels    []string       // of a classifier
	info      map[string]any // the tokenizer's configuration

	compiler *compiler // of the forms that answers are held to
}

// tokenizerConfig is what tokenizer_config.json says that matters here.
type tokenizerConfig struct {
	BOS      tokenName       `json:"bos_token"`
	EOS      tokenName       `json:"eos_token"`
	Template json.RawMessage `json:"chat_template"`
}

// tokenName is a token's spelling, in files either text or an object.
type tokenName string

// UnmarshalJSON takes either form, and null.
func (t *tokenName) UnmarshalJSON(data []byte) error {
	var o struct {
		Content string `json:"content"`
	}
	if json.Unmarshal(data, (*string)(t)) == nil {
		return nil
	}
	err := json.Unmarshal(data, &o)
	*t = tokenName(o.Content)
	return err
}

// Bounds of the files that are read whole.
const (
	maxTokenizer = 256 << 20
	maxText      = 16 << 20 // of configurations and templates
)

// loadTextFiles reads tokenizer.json, tokenizer_config.json and the chat template.
func loadTextFiles(fsys fs.FS, name, override string) (textFiles, error) {
	var w textFiles
	data, err := weights.ReadBounded(fsys, "tokenizer.json", maxTokenizer)
	if err != nil {
		return w, fmt.Errorf("%s: %w", name, err)
	}
	if w.tokenizer, err = tokenizer.Load(data); err != nil {
		return w, fmt.Errorf("%s: %w", name, err) // which names tokenizer.json
	}
	var c tokenizerConfig
	data, err = weights.ReadBounded(fsys, "tokenizer_config.json", maxText)
	if err == nil {
		if err := json.Unmarshal(data, &c); err != nil {
			return w, fmt.Errorf("%s/tokenizer_config.json: %w", name, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return w, fmt.Errorf("%s: %w", name, err)
	}
	_ = json.Unmarshal(data, &w.info) // an object, as was just read; or nothing
	w.bos, w.eos = string(c.BOS), string(c.EOS)
	w.labels = readLabels(fsys)
	if w.source, err = templateSource(fsys, c.Template, override); err != nil {
		return w, fmt.Errorf("%s: %w", name, err)
	}
	return w, w.parse(name)
}

// parse makes the template ready, if there is one.
func (w *textFiles) parse(name string) error {
	if w.source == "" {
		return nil
	}
	t, err := template.Parse(w.source)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var content any = ""
	if asksNone.MatchString(w.source) {
		content = nil
	}
	thinks := strings.Contains(w.source, "message.thinking")
	w.template = func(vars map[string]any) ([]tokenizer.Segment, error) {
		fillContents(vars, content)
		if thinks {
			fillThinking(vars)
		}
		return t.Render(vars, template.Limits{Now: time.Now()})
	}
	return nil
}

// loadGGUFText reads the tokenizer and the chat template of a GGUF file.
func loadGGUFText(f *gguf.File, name, override string) (w textFiles, err error) {
	if w.tokenizer, err = tokenizer.LoadGGUF(f); err != nil {
		return w, fmt.Errorf("%s: %w", name, err)
	}
	for key, at := range map[string]*string{"bos": &w.bos, "eos": &w.eos} {
		id, err := f.Int("tokenizer.ggml."+key+"_token_id", -1)
		if err != nil {
			return w, fmt.Errorf("%s: %w", name, err)
		}
		if id >= 0 {
			*at = w.tokenizer.Token(int32(min(id, math.MaxInt32)))
		}
	}
	if override != "" {
		w.source, err = templateSource(nil, nil, override)
	} else {
		w.source, err = f.String("tokenizer.chat_template")
	}
	if err != nil {
		return w, fmt.Errorf("%s: %w", name, err)
	}
	return w, w.parse(name)
}

// templateSource finds the chat template: --chat-template, a file of its own,
// or the tokenizer's configuration, there perhaps one of several.
func templateSource(fsys fs.FS, configured json.RawMessage, override string) (string, error) {
	if override != "" {
		data, err := os.ReadFile(override)
		if err != nil {
			return "", fmt.Errorf("--chat-template: %w", err)
		}
		return string(data), nil
	}
	data, err := weights.ReadBounded(fsys, "chat_template.jinja", maxText)
	if err == nil {
		return string(data), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if len(configured) == 0 || string(configured) == "null" {
		return "", nil
	}
	var one string
	if json.Unmarshal(configured, &one) == nil {
		return one, nil
	}
	var many []struct{ Name, Template string }
	if err := json.Unmarshal(configured, &many); err != nil {
		return "", fmt.Errorf("tokenizer_config.json: chat_template is neither text nor a list of named ones")
	}
	for _, t := range many {
		if t.Name == "default" {
			return t.Template, nil
		}
	}
	return "", nil
}

// readLabels reads the names of a classifier's classes; a model without them
// has numbers alone.
func readLabels(fsys fs.FS) []string {
	var c struct {
		Names map[string]string `json:"id2label"`
	}
	data, err := weights.ReadBounded(fsys, "config.json", maxText)
	if err != nil || json.Unmarshal(data, &c) != nil {
		return nil
	}
	var out []string
	for i := range len(c.Names) {
		name, ok := c.Names[strconv.Itoa(i)]
		if !ok {
			return nil
		}
		out = append(out, name)
	}
	return out
}

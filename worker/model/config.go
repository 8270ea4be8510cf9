package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"reflect"
	"slices"
	"strings"

	"roundhouse/worker/weights"
)

// Kind is what a model is for.
type Kind uint8

// The kinds of models.
const (
	Generate Kind = iota // writes tokens
	Embed                // one vector a text
	Score                // one number a text or a pair of texts
)

func (k Kind) String() string { return [...]string{"generate", "embed", "score"}[k] }

// Config is what is known of a model without its weights.
type Config struct {
	Architecture string // as in config.json: Qwen3ForCausalLM
	ModelType    string // as in config.json: qwen3
	Kind         Kind
	DType        string // how the file stores most weights: bfloat16, float16, float32

	Vocab        int
	Hidden       int
	Layers       int
	Heads        int
	KVHeads      int
	HeadDim      int
	MaxPositions int // tokens of the longest sequence, scaling of positions included

	BOS *int32  // nil: none
	EOS []int32 // tokens that end an answer, of generation_config.json first

	// Windows has one entry for each KV group: how many tokens its layers see,
	// 0 for all. Blocks that lie behind a window may be freed.
	// It is empty for encoders, which keep no KV cache.
	Windows []int

	Labels int // numbers that a model which scores gives for each text; 0 for others

	// Segments is how many a model tells apart of the texts of a pair; 0: it has none.
	Segments int

	// Padding is a token that takes no position, see Positions; nil: all take one.
	Padding      *int32
	positionRows int // of the table, but for padding's

	// Dimensions are the lengths that a vector of this model may be cut to:
	// nil: none; empty: any.
	Dimensions []int

	// Prompts that an embedding model was trained with, by name, and the one
	// that is put before a text when a request names none ("": none).
	Prompts       map[string]string
	DefaultPrompt string

	Vision  *Vision  // nil: it sees nothing
	Hearing *Hearing // nil: it hears nothing

	Quantised string // quant_method of the checkpoint; gguf; "": it is not quantised

	// Defaults of generation_config.json; nil where it says nothing.
	Sampling SamplingDefaults
}

// SamplingDefaults are what a request that leaves them out is sampled with.
type SamplingDefaults struct {
	Temperature       *float64 `json:"temperature"`
	TopK              *int     `json:"top_k"`
	TopP              *float64 `json:"top_p"`
	MinP              *float64 `json:"min_p"`
	RepetitionPenalty *float64 `json:"repetition_penalty"`
}

// maxConfig bounds config.json and generation_config.json.
const maxConfig = 4 << 20

// readSettings reads config.json of a model's folder.
func readSettings(fsys fs.FS, over Overrides) (*settings, architecture, error) {
	data, err := weights.ReadBounded(fsys, "config.json", maxConfig)
	if err == nil {
		data, err = over.over(data)
	}
	if err != nil {
		return nil, architecture{}, err
	}
	return parseFolder(data, fsys)
}

// parseSettings reads a config.json without a folder around it.
func parseSettings(data []byte) (*settings, architecture, error) { return parseFolder(data, nil) }

func parseFolder(data []byte, fsys fs.FS) (s *settings, arch architecture, err error) {
	var head struct {
		Architectures []string `json:"architectures"`
	}
	if err := fields(data, &head); err != nil {
		return nil, architecture{}, fmt.Errorf("config.json: %w", err)
	}
	if arch, err = findArchitecture(head.Architectures); err != nil {
		return nil, arch, err
	}
	s = &settings{}
	arch.defaults(s)
	if err := fields(data, s); err != nil {
		return nil, arch, fmt.Errorf("config.json: %w", err)
	}
	if s.ears != nil {
		if err := fields(data, s.ears); err != nil {
			return nil, arch, fmt.Errorf("config.json: %w", err)
		}
	}
	if arch.seeing {
		if err := s.readText(arch.tower != nil); err != nil {
			return nil, arch, fmt.Errorf("config.json: %w", err)
		}
	}
	if arch.finish != nil {
		arch.finish(s)
	}
	if fsys != nil {
		if s.pooling, err = readPooling(fsys, arch); err != nil {
			return nil, arch, err
		}
	}
	faults := s.complete()
	if s.quant, err = s.readQuant(arch); err != nil {
		faults = append(faults, err.Error())
	}
	if len(faults) > 0 {
		return nil, arch, fmt.Errorf("config.json: %s", strings.Join(faults, "; "))
	}
	return s, arch, nil
}

// fields reads an object, and tells of a field of a wrong type in JSON's words.
func fields(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	if wrong.Field == "" {
		return fmt.Errorf("found %s in place of an object", wrong.Value)
	}
	return fmt.Errorf("%s is %s, which is not what belongs there (%s)", wrong.Field, wrong.Value, jsonKind(wrong.Type.Kind()))
}

// jsonKind is the name of what holds values of a kind.
func jsonKind(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// readText takes the fields of text_config over those beside it, and what sees
// from vision_config. Older files of models with a tower have the text's fields
// beside vision_config alone.
func (s *settings) readText(tower bool) error {
	kind, text, tied := s.ModelType, s.Text, s.Tied
	if isNull(text) && !tower {
		return errors.New("text_config is missing")
	}
	if !isNull(text) {
		if err := fields(text, s); err != nil {
			return fmt.Errorf("text_config: %w", err)
		}
	}
	s.ModelType, s.Text, s.seeing = kind, nil, true
	if !tower {
		return nil
	}
	s.Tied = s.Tied || tied
	if isNull(s.Vision) {
		return errors.New("vision_config is missing")
	}
	if err := fields(s.Vision, s.eyes); err != nil {
		return fmt.Errorf("vision_config: %w", err)
	}
	return nil
}

// config is what of the settings others see.
func (s *settings) config(arch architecture, groups []group) Config {
	c := Config{Architecture: arch.name, ModelType: s.ModelType, Kind: arch.kind, DType: s.DType,
		Vocab: s.Vocab, Hidden: s.Hidden, Layers: s.Layers, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim,
		MaxPositions: s.positions(), EOS: s.EOS}
	if arch.segments {
		c.Segments = s.TypeVocab
	}
	if arch.padding {
		c.Padding, c.positionRows = s.xlmRobertaPadding(), s.MaxPositions
	}
	if s.quant != nil {
		c.Quantised = s.quant.method
	}
	if s.eyes != nil && arch.tower != nil {
		c.Vision = visionOf(s)
	}
	c.Hearing = hearingOf(s)
	if s.pooling != nil {
		c.Kind, c.Prompts, c.DefaultPrompt = Embed, s.pooling.prompts, s.pooling.prompt
		if n := s.pooling.maxTokens; n > 0 {
			c.MaxPositions = min(c.MaxPositions, n)
		}
	}
	if arch.kind == Score {
		c.Labels = s.labels()
	}
	if c.Kind == Embed && (s.Matryoshka || s.Dimensions != nil) {
		c.Dimensions = append([]int{}, s.Dimensions...)
	}
	if len(s.BOS) > 0 {
		c.BOS = &s.BOS[0]
	}
	for _, g := range groups {
		c.Windows = append(c.Windows, g.window)
	}
	return c
}

// positions is the longest sequence: YaRN and linear scaling stretch what the
// model was trained with.
func (s *settings) positions() int {
	p, err := s.ropeOf(fullAttention)
	if err != nil {
		return s.MaxPositions
	}
	stretched := 0.0
	switch {
	case s.LocalTheta > 0: // Gemma 3 gives the stretched length
	case p.Type == "yarn":
		stretched = p.Original * p.Factor
	case p.Type == "linear", p.Type == "dynamic" && p.Alpha == 0:
		stretched = float64(s.MaxPositions) * p.Factor
	}
	return max(s.MaxPositions, int(min(stretched, 1<<26)))
}

// Generation takes generation_config.json of another folder in place of the
// model's own.
func (m *Model) Generation(folder fs.FS) error {
	if _, err := fs.Stat(folder, "generation_config.json"); err != nil {
		return err
	}
	m.config.Sampling = SamplingDefaults{}
	return m.config.generation(folder)
}

// generation adds what generation_config.json says, if it is there.
func (c *Config) generation(fsys fs.FS) error {
	const name = "generation_config.json"
	data, err := weights.ReadBounded(fsys, name, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var file struct {
		SamplingDefaults
		EOS ids `json:"eos_token_id"`
		BOS ids `json:"bos_token_id"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, id := range slices.Concat(file.EOS, file.BOS) {
		if id < 0 || int(id) >= c.Vocab {
			return fmt.Errorf("%s: token id %d is not below vocab_size %d", name, id, c.Vocab)
		}
	}
	for _, id := range c.EOS {
		if !slices.Contains(file.EOS, id) {
			file.EOS = append(file.EOS, id)
		}
	}
	c.EOS = file.EOS
	if c.BOS == nil && len(file.BOS) > 0 {
		c.BOS = &file.BOS[0]
	}
	c.Sampling = file.SamplingDefaults
	return c.Sampling.check(name)
}

func (d SamplingDefaults) check(name string) error {
	bound := func(field string, v *float64, low, high float64) error {
		if v != nil && !(*v >= low && *v <= high) {
			return fmt.Errorf("%s: %s is %g; want %g to %g", name, field, *v, low, high)
		}
		return nil
	}
	if d.TopK != nil && *d.TopK < 0 {
		return fmt.Errorf("%s: top_k is %d; want 0 or more", name, *d.TopK)
	}
	return errors.Join(
		bound("temperature", d.Temperature, 0, 100),
		bound("top_p", d.TopP, 0, 1),
		bound("min_p", d.MinP, 0, 1),
		bound("repetition_penalty", d.RepetitionPenalty, math.SmallestNonzeroFloat32, 100))
}

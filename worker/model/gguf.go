package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"roundhouse/worker/gguf"
	"roundhouse/worker/weights"
)

// ggufFile is a model that is one GGUF file: what its header says, and how its
// tensors differ from those of Hugging Face.
type ggufFile struct {
	name string // of the file, for errors
	head *gguf.File
	arch string // general.architecture
	form *ggufForm

	factors []float64 // that the angles of RoPE are divided by; nil: none
	pairs   int       // columns of a head whose rows are stored in pairs; 0: in halves
	asked   map[string]bool
}

// OpenGGUF reads a GGUF file's header, and maps it. It fails where Open does.
func OpenGGUF(path string) (*Model, error) {
	set, head, err := weights.OpenGGUF(path)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return openGGUF(filepath.Base(path), set, head)
}

// OpenGGUFFS is OpenGGUF for a file of fsys.
func OpenGGUFFS(fsys fs.FS, name string) (*Model, error) {
	set, head, err := weights.OpenGGUFFS(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return openGGUF(name, set, head)
}

func openGGUF(name string, set *weights.Set, head *gguf.File) (*Model, error) {
	g := &ggufFile{name: name, head: head, asked: map[string]bool{}}
	m, err := g.open(set)
	if err != nil {
		_ = set.Close() // the reason why opening failed matters more
		return nil, fmt.Errorf("model %s: %w", name, g.inItsWords(err))
	}
	return m, nil
}

func (g *ggufFile) open(set *weights.Set) (*Model, error) {
	if err := g.isModel(); err != nil {
		return nil, err
	}
	config, err := g.config(set)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	s, arch, err := parseSettings(data)
	if err != nil {
		return nil, err
	}
	if err := g.readFactors(set, s.HeadDim); err != nil {
		return nil, err
	}
	if g.form.paired {
		g.pairs = s.HeadDim
	}
	s.gguf = g
	m := &Model{settings: s, arch: arch, groups: arch.groups(s), set: set}
	m.config = s.config(arch, m.groups)
	m.config.Quantised = "gguf"
	if err := g.ends(&m.config); err != nil {
		return nil, err
	}
	if m.config.Sampling, err = g.sampling(); err != nil {
		return nil, err
	}
	if err := m.dryRun(); err != nil {
		return nil, err
	}
	return m, g.checkAsked()
}

// isModel refuses a file of something else, as of an adapter.
func (g *ggufFile) isModel() error {
	kind, err := g.head.String("general.type")
	if err != nil {
		return err
	}
	if kind != "" && kind != "model" {
		return fmt.Errorf("general.type is %.40q; want a model", kind)
	}
	return nil
}

// readFactors takes the tensor by which Llama 3's scaling of RoPE is written.
func (g *ggufFile) readFactors(set *weights.Set, headDim int) error {
	const name = "rope_freqs.weight"
	t := set.Lookup(name)
	if t == nil {
		return nil
	}
	g.asked[name] = true
	if t.Type != weights.F32 || !slices.Equal(t.Shape, []int{headDim / 2}) {
		return fmt.Errorf("%s is %s of shape %v; want F32 of [%d]", name, t.Type, t.Shape, headDim/2)
	}
	data, err := t.Data()
	if err != nil {
		return err
	}
	for i, v := range floatsOf(data) {
		if !(v >= 1e-6 && v <= 1e6) {
			return fmt.Errorf("%s: element %d is %g; want 1e-6 to 1e6", name, i, v)
		}
		g.factors = append(g.factors, float64(v))
	}
	return nil
}

// ends takes the tokens that begin and end an answer. Besides those that have
// keys of their own, the ones that end a turn in these families' templates do,
// as they do in their generation_config.json.
func (g *ggufFile) ends(c *Config) error {
	add := func(id int) {
		if !slices.Contains(c.EOS, int32(id)) {
			c.EOS = append(c.EOS, int32(id))
		}
	}
	for _, key := range []string{"eos", "eot", "eom", "bos"} {
		key := "tokenizer.ggml." + key + "_token_id"
		id, err := g.head.Int(key, -1)
		switch {
		case err != nil:
			return err
		case id == -1:
		case id < 0 || id >= c.Vocab:
			return fmt.Errorf("%s is %d; want less than the %d tokens of token_embd.weight", key, id, c.Vocab)
		case strings.HasSuffix(key, "bos_token_id"):
			bos := int32(id)
			c.BOS = &bos
		default:
			add(id)
		}
	}
	tokens, err := g.head.Strings("tokenizer.ggml.tokens")
	if err != nil {
		return err
	}
	if len(tokens) > c.Vocab {
		return fmt.Errorf("tokenizer.ggml.tokens has %d tokens; token_embd.weight has %d", len(tokens), c.Vocab)
	}
	for id, token := range tokens {
		if slices.Contains(ggufEnds, token) || slices.Contains(g.form.ends, token) {
			add(id)
		}
	}
	return nil
}

// sampling takes what a request that leaves it out is sampled with.
func (g *ggufFile) sampling() (d SamplingDefaults, err error) {
	for key, at := range map[string]**float64{"temp": &d.Temperature, "top_p": &d.TopP, "min_p": &d.MinP, "penalty_repeat": &d.RepetitionPenalty} {
		key = "general.sampling." + key
		if !g.head.Has(key) {
			continue
		}
		v, err := g.head.Float(key, 0)
		if err != nil {
			return d, err
		}
		v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64) // 0.7, not 0.699999988
		*at = &v
	}
	if key := "general.sampling.top_k"; g.head.Has(key) {
		k, err := g.head.Int(key, 0)
		if err != nil {
			return d, err
		}
		d.TopK = &k
	}
	return d, d.check("general.sampling")
}

// checkAsked refuses tensors that the architecture does not have: they would
// change the result.
func (g *ggufFile) checkAsked() error {
	for _, t := range g.head.Tensors {
		if !g.asked[t.Name] {
			return fmt.Errorf("tensor %q is not known for architecture %q", t.Name, g.arch)
		}
	}
	return nil
}

// unpairRows puts the rows of each head as Hugging Face has them: GGUF's llama
// has row 2i+j of a head where they have row j·(pairs/2)+i.
func (g *ggufFile) unpairRows(name string, data []byte, rows int) []byte {
	if g.pairs == 0 || !strings.Contains(name, ".attn_q.") && !strings.Contains(name, ".attn_k.") {
		return data
	}
	out, size := make([]byte, 0, len(data)), len(data)/rows
	for head := 0; head < rows; head += g.pairs {
		for j := range 2 {
			for i := range g.pairs / 2 {
				from := (head + 2*i + j) * size
				out = append(out, data[from:from+size]...)
			}
		}
	}
	return out
}

// GGUF is the header of a model that is one GGUF file, which has its tokenizer
// and its template; nil for others.
func (m *Model) GGUF() *gguf.File {
	if m.settings.gguf == nil {
		return nil
	}
	return m.settings.gguf.head
}

// inItsWords names the keys of a GGUF file where an error names the fields
// that they were turned into.
func (g *ggufFile) inItsWords(err error) error {
	if g.form == nil {
		return err
	}
	text := err.Error()
	fields := slices.Concat(ggufFields, g.form.fields)
	// The longest first: some begin like others.
	slices.SortStableFunc(fields, func(a, b ggufField) int { return len(b.field) - len(a.field) })
	var pairs []string
	for _, f := range fields {
		pairs = append(pairs, f.field, g.arch+"."+f.key)
	}
	pairs = append(pairs, "config.json: ", "", "as config.json says", "as the header says")
	if said := strings.NewReplacer(pairs...).Replace(text); said != text {
		return errors.New(said)
	}
	return err
}

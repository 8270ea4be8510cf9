package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"roundhouse/kernels"
	"roundhouse/worker/weights"
)

// pooling is how an embedding model makes one vector of a sequence, as the
// files of sentence-transformers say.
type pooling struct {
	kind      kernels.Pooling
	normalise bool
	maxTokens int // 0: no limit but the model's
	prompts   map[string]string
	prompt    string // name of the default
}

// readPooling reads modules.json and what it names. A folder without it is an
// embedding model only if its architecture is nothing else; it then takes the
// vector of an encoder's first token, or of a decoder's last, and normalises it,
// as vLLM does.
func readPooling(fsys fs.FS, arch architecture) (*pooling, error) {
	const name = "modules.json"
	data, err := weights.ReadBounded(fsys, name, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		switch {
		case arch.kind != Embed:
			return nil, nil
		case arch.encoder:
			return &pooling{kind: kernels.PoolCLS, normalise: true}, nil
		}
		return &pooling{kind: kernels.PoolLast, normalise: true}, nil // the first sees nothing but itself
	}
	if err != nil {
		return nil, err
	}
	if arch.kind == Score {
		return nil, nil // a cross-encoder, which sentence-transformers describes too
	}
	if arch.embeds == "" {
		return nil, fmt.Errorf("%s: %s is not supported as an embedding model", name, arch.name)
	}
	var modules []struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &modules); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &pooling{}
	pooled := false
	for i, m := range modules {
		switch kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]; kind {
		case "Transformer":
		case "Pooling":
			pooled = true
			if p.kind, err = readPoolingMode(fsys, path.Join(m.Path, "config.json")); err != nil {
				return nil, err
			}
		case "Normalize":
			p.normalise = true
		default:
			return nil, fmt.Errorf("%s: module %d is %.80q; known are Transformer, Pooling and Normalize", name, i, m.Type)
		}
	}
	if !pooled {
		return nil, fmt.Errorf("%s names no Pooling", name)
	}
	return p, p.readPrompts(fsys)
}

// readPoolingMode reads the config.json of a Pooling module.
func readPoolingMode(fsys fs.FS, name string) (kernels.Pooling, error) {
	if !fs.ValidPath(name) {
		return 0, fmt.Errorf("modules.json: path of %.80q leaves the model's folder", name)
	}
	data, err := weights.ReadBounded(fsys, name, maxConfig)
	if err != nil {
		return 0, err
	}
	var file struct {
		Mode          string `json:"pooling_mode"` // of newer files
		CLS           bool   `json:"pooling_mode_cls_token"`
		Mean          bool   `json:"pooling_mode_mean_tokens"`
		Last          bool   `json:"pooling_mode_lasttoken"`
		Max           bool   `json:"pooling_mode_max_tokens"`
		MeanSqrt      bool   `json:"pooling_mode_mean_sqrt_len_tokens"`
		Weighted      bool   `json:"pooling_mode_weightedmean_tokens"`
		IncludePrompt *bool  `json:"include_prompt"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if file.IncludePrompt != nil && !*file.IncludePrompt {
		return 0, fmt.Errorf("%s: include_prompt false is not supported", name)
	}
	modes := map[string]bool{"cls": file.CLS, "mean": file.Mean, "lasttoken": file.Last,
		"max": file.Max, "mean_sqrt_len_tokens": file.MeanSqrt, "weightedmean": file.Weighted}
	if file.Mode != "" {
		modes = map[string]bool{file.Mode: true}
	}
	known := map[string]kernels.Pooling{"cls": kernels.PoolCLS, "mean": kernels.PoolMean, "lasttoken": kernels.PoolLast}
	chosen := []kernels.Pooling{}
	for mode, on := range modes {
		if !on {
			continue
		}
		kind, ok := known[mode]
		if !ok {
			return 0, fmt.Errorf("%s: pooling by %.40q is not supported; supported are cls, mean and lasttoken", name, mode)
		}
		chosen = append(chosen, kind)
	}
	if len(chosen) != 1 {
		return 0, fmt.Errorf("%s: %d ways of pooling at once; want one of cls, mean and lasttoken", name, len(chosen))
	}
	return chosen[0], nil
}

// readPrompts reads the prompts and the longest text, where there are files
// that say so.
func (p *pooling) readPrompts(fsys fs.FS) error {
	read := func(name string, into any) error {
		data, err := weights.ReadBounded(fsys, name, maxConfig)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, into); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	var prompts struct {
		Prompts map[string]string `json:"prompts"`
		Default string            `json:"default_prompt_name"`
	}
	var limits struct {
		Max int `json:"max_seq_length"`
	}
	if err := errors.Join(read("config_sentence_transformers.json", &prompts), read("sentence_bert_config.json", &limits)); err != nil {
		return err
	}
	if _, ok := prompts.Prompts[prompts.Default]; prompts.Default != "" && !ok {
		return fmt.Errorf("config_sentence_transformers.json: default_prompt_name %.80q is none of the prompts", prompts.Default)
	}
	if limits.Max < 0 {
		return fmt.Errorf("sentence_bert_config.json: max_seq_length is %d; want 0 or more", limits.Max)
	}
	p.prompts, p.prompt, p.maxTokens = prompts.Prompts, prompts.Default, limits.Max
	return nil
}

package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"roundhouse/worker/model"
	"roundhouse/worker/server"
	"roundhouse/worker/sound"
	"roundhouse/worker/speech"
)

// hearing is what flags and variables say of sound, and what follows from it for a
// model.
type hearing struct {
	MiB     float64 // of one file; 0: mostFile
	Seconds float64 // of one file, as decoded; 0: mostSeconds

	extractor *sound.Extractor // nil: the model hears nothing
	words     *speech.Words
	budget    int64 // bytes of rows that are kept
}

// vLLM's bounds of one file.
const (
	mostFile    = 25
	mostSeconds = 600
)

// environment reads the variables that vLLM reads.
func (h *hearing) environment(getenv func(string) string) error {
	for name, at := range map[string]*float64{"VLLM_MAX_AUDIO_CLIP_FILESIZE_MB": &h.MiB, "VLLM_MAX_AUDIO_DECODE_DURATION_S": &h.Seconds} {
		v := getenv(name)
		if v == "" {
			continue
		}
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || !(n > 0 && n <= 1<<20) {
			return fmt.Errorf("%s is %q; want a number above 0, at most %d", name, v, 1<<20)
		}
		*at = n
	}
	return nil
}

// read makes ready what hears.
func (h *hearing) read(o *Options, name string, folder fs.FS, m *model.Hearing) error {
	if strings.HasPrefix(o.Device, "xpu") {
		return fmt.Errorf("%s writes down speech, which is not computed on GPUs; start it with --device cpu", name)
	}
	config, err := configWithin(folder, "feature_extractor")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", name, err)
	}
	if h.extractor, err = sound.NewExtractor(config, m.Bins, 2*m.Rows); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	h.budget = max(leastRows, 2*4*int64(m.Rows)*int64(m.Width))
	if o.Sight.CacheGB > 0 {
		h.budget = int64(o.Sight.CacheGB * (1 << 30))
	}
	return nil
}

// know finds the tokens that have a meaning of their own.
func (h *hearing) know(name string, cfg model.Config, w *textFiles) (err error) {
	m := cfg.Hearing
	if m == nil {
		return nil
	}
	h.words, err = speech.NewWords(speech.Settings{Vocab: cfg.Vocab, Suppress: m.Suppress, First: m.First, Latest: m.Latest, Many: m.Many}, w.tokenizer.TokenID, w.tokenizer.Token)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// server is how the server reads sound; nil: it does not.
func (h *hearing) server(cfg model.Config) *server.Hearing {
	if h.extractor == nil {
		return nil
	}
	out := &server.Hearing{Words: h.words, Extractor: h.extractor, Rows: cfg.Hearing.Rows, Bytes: mostFile << 20, Sound: sound.Limits{Seconds: mostSeconds}, Decoding: make(chan struct{}, decoders)}
	if h.MiB > 0 {
		out.Bytes = int64(h.MiB * (1 << 20))
	}
	if h.Seconds > 0 {
		out.Sound.Seconds = h.Seconds
	}
	return out
}

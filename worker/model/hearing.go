package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"roundhouse/kernels"
	"roundhouse/worker/weights"
)

// hearingSettings are the fields of config.json that matter of a model that hears.
type hearingSettings struct {
	Width         int    `json:"d_model"`
	Act           string `json:"activation_function"`
	Bins          int    `json:"num_mel_bins"`
	Rows          int    `json:"max_source_positions"`
	Positions     int    `json:"max_target_positions"`
	Layers        int    `json:"encoder_layers"`
	Heads         int    `json:"encoder_attention_heads"`
	Inner         int    `json:"encoder_ffn_dim"`
	DecoderLayers int    `json:"decoder_layers"`
	DecoderHeads  int    `json:"decoder_attention_heads"`
	DecoderInner  int    `json:"decoder_ffn_dim"`

	speechSettings // of older folders, which have no generation_config.json
}

// speechSettings are what generation_config.json says of writing down what was
// heard.
type speechSettings struct {
	Suppress []int32 `json:"suppress_tokens"`       // never written
	First    []int32 `json:"begin_suppress_tokens"` // not written first
	Latest   *int    `json:"max_initial_timestamp_index"`
	Many     *bool   `json:"is_multilingual"`
}

// Hearing is how a model hears, as far as it is known without its weights.
type Hearing struct {
	Bins  int // of a frame of the spectrogram
	Rows  int // that the encoder makes of a sound, each of two frames
	Width int // columns of a row

	Suppress []int32 // tokens that are never written
	First    []int32 // tokens that are not written first
	Latest   int     // of the times that may come first, counted from 0; -1: any
	Many     bool    // it knows languages and tasks
}

// Limits bound a step of a slice.
func (h *Hearing) Limits() kernels.Limits {
	return kernels.Limits{Tokens: h.Rows, Seqs: 1, Frames: 2 * h.Rows, Shared: true}
}

// multilingual is the least vocabulary of models that know languages.
const multilingual = 51865

// hearingOf is what others are told of how a model hears.
func hearingOf(s *settings) *Hearing {
	if s.ears == nil {
		return nil
	}
	h := &Hearing{Bins: s.ears.Bins, Rows: s.ears.Rows, Width: s.Hidden, Latest: -1, Many: s.Vocab >= multilingual}
	h.take(&s.ears.speechSettings)
	return h
}

// take has what a file says hold.
func (h *Hearing) take(s *speechSettings) {
	if s.Suppress != nil {
		h.Suppress = s.Suppress
	}
	if s.First != nil {
		h.First = s.First
	}
	if s.Latest != nil {
		h.Latest = *s.Latest
	}
	if s.Many != nil {
		h.Many = *s.Many
	}
}

// generation adds what generation_config.json says, if it is there.
func (h *Hearing) generation(fsys fs.FS, vocab int) error {
	const name = "generation_config.json"
	data, err := weights.ReadBounded(fsys, name, maxConfig)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var s speechSettings
	if err == nil {
		if err := json.Unmarshal(data, &s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	h.take(&s)
	for _, list := range [][]int32{h.Suppress, h.First} {
		for _, id := range list {
			if id < 0 || int(id) >= vocab {
				return fmt.Errorf("%s: token id %d of suppress_tokens or begin_suppress_tokens is not below vocab_size %d", name, id, vocab)
			}
		}
	}
	return nil
}

// heardGroup is the pages of what was heard: a block is all of one sequence, in the
// lanes of kernels.
func heardGroup(s *settings) group {
	return group{spec: kernels.KVSpec{Layers: s.Layers, Heads: s.KVHeads, KeyDim: s.HeadDim, ValueDim: s.HeadDim, BlockTokens: (s.ears.Rows + 15) &^ 15, Cross: true}}
}

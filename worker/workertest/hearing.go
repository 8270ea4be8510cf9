package workertest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"roundhouse/worker/demo"
)

// Languages that a model of WriteHearing knows.
var Languages = []string{"en", "de", "ja"}

// WriteHearing is WriteFolder of a model that hears, with all that it takes to write
// down speech: tokens for tasks, languages and times, and the rules of its texts. A
// piece of sound is a second.
func WriteHearing(dir, golden string) error {
	data, err := fs.ReadFile(demo.FS, "tokenizer.json")
	if err != nil {
		return err
	}
	var words map[string]any
	if err := json.Unmarshal(data, &words); err != nil {
		return err
	}
	added := words["added_tokens"].([]any)
	ids, next := map[string]int{}, 0
	for _, one := range added {
		t := one.(map[string]any)
		ids[t["content"].(string)], next = int(t["id"].(float64)), max(next, int(t["id"].(float64))+1)
	}
	add := func(name string, special bool) {
		added = append(added, map[string]any{"id": next, "content": name, "special": special})
		ids[name], next = next, next+1
	}
	suppress := []int{ids["<|im_start|>"], ids["<|im_end|>"], next}
	add("<|startoftranscript|>", true)
	for _, l := range Languages {
		add("<|"+l+"|>", true)
	}
	for _, name := range []string{"<|translate|>", "<|transcribe|>", "<|startofprev|>", "<|nospeech|>"} {
		suppress = append(suppress, next)
		add(name, true)
	}
	add("<|notimestamps|>", true)
	for i := range 51 {
		add(fmt.Sprintf("<|%.2f|>", float64(i)/50), false)
	}
	words["added_tokens"] = added
	if err := WriteFolder(dir, golden, next); err != nil {
		return err
	}
	end := ids["<|endoftext|>"]
	config := map[string]any{}
	if data, err = os.ReadFile(filepath.Join(dir, "config.json")); err != nil {
		return err
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	for _, name := range []string{"bos_token_id", "eos_token_id", "pad_token_id"} {
		config[name] = end
	}
	config["decoder_start_token_id"] = ids["<|startoftranscript|>"]
	for name, v := range map[string]any{"tokenizer.json": words, "config.json": config,
		"generation_config.json":   map[string]any{"eos_token_id": end, "is_multilingual": true, "suppress_tokens": suppress, "begin_suppress_tokens": []int{end}, "max_initial_timestamp_index": 20},
		"preprocessor_config.json": map[string]any{"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 80, "chunk_length": 1, "sampling_rate": 16000, "hop_length": 160, "n_fft": 400}} {
		if data, err = json.Marshal(v); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Sing is a WAV file of 16 kHz: how it sounds follows from the seed.
func Sing(seconds float64, seed int) []byte {
	n := int(seconds * 16000)
	b := []byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data")
	binary.LittleEndian.PutUint32(b[4:], uint32(36+2*n))
	b = binary.LittleEndian.AppendUint32(b, uint32(2*n))
	for i := range n {
		t := float64(i) / 16000
		v := 0.5 * math.Sin(2*math.Pi*(150+90*float64(seed)+200*t)*t) * math.Sin(2*math.Pi*(2+float64(seed))*t)
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(32000*v)))
	}
	return b
}

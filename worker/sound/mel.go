package sound

import (
	"encoding/json"
	"fmt"
	"math"
)

// The figures of Whisper's spectrogram.
const (
	window = 400 // samples of a frame
	hop    = 160 // samples from one frame to the next
	bins   = window/2 + 1
)

// Extractor makes log-mel spectrograms as transformers' WhisperFeatureExtractor.
type Extractor struct {
	bands  int
	length int // samples of a piece, with the silence behind it
	hann   [window]float64
	filter []band
}

// band is a triangle over bins of the spectrum, from first on.
type band struct {
	first   int
	weights []float64
}

// NewExtractor makes one for a model that reads so many bands and frames, from the
// settings of preprocessor_config.json; nil: there is none.
func NewExtractor(config []byte, bands, frames int) (*Extractor, error) {
	c := struct {
		Bands     *int    `json:"feature_size"`
		Rate      int     `json:"sampling_rate"`
		Hop       int     `json:"hop_length"`
		Window    int     `json:"n_fft"`
		Seconds   *int    `json:"chunk_length"`
		Dither    float64 `json:"dither"`
		Normalise bool    `json:"do_normalize"`
	}{Rate: Rate, Hop: hop, Window: window}
	if config != nil {
		if err := json.Unmarshal(config, &c); err != nil {
			return nil, fmt.Errorf("preprocessor_config.json: %w", err)
		}
	}
	switch {
	case c.Rate != Rate || c.Hop != hop || c.Window != window:
		return nil, fmt.Errorf("preprocessor_config.json: windows of %d samples every %d, of %d a second; known are %d, %d and %d", c.Window, c.Hop, c.Rate, window, hop, Rate)
	case c.Bands != nil && *c.Bands != bands:
		return nil, fmt.Errorf("preprocessor_config.json: feature_size is %d, and num_mel_bins in config.json %d", *c.Bands, bands)
	case c.Seconds != nil && *c.Seconds*Rate/hop != frames:
		return nil, fmt.Errorf("preprocessor_config.json: chunk_length is %d seconds, and max_source_positions in config.json %d, twice as many hundredths of a second", *c.Seconds, frames/2)
	case c.Dither != 0 || c.Normalise:
		return nil, fmt.Errorf("preprocessor_config.json: dither and do_normalize are not known")
	}
	x := &Extractor{bands: bands, length: frames * hop, filter: melBands(bands)}
	for i := range x.hann {
		x.hann[i] = 0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/window)
	}
	return x, nil
}

// Samples is the longest piece.
func (x *Extractor) Samples() int { return x.length }

// Frames is the frames of every piece.
func (x *Extractor) Frames() int { return x.length / hop }

// melBands are triangles that stand side by side on Slaney's scale, from 0 to
// 8,000 Hz, each of the area that its width asks for.
func melBands(count int) []band {
	const linear, logFrom, perOctave = 200.0 / 3, 1000.0, 27.0
	hertz := func(mel float64) float64 {
		if mel < logFrom/linear {
			return mel * linear
		}
		return logFrom * math.Exp((mel-logFrom/linear)*math.Log(6.4)/perOctave)
	}
	most := logFrom/linear + perOctave*math.Log(Rate/2/logFrom)/math.Log(6.4)
	corners := make([]float64, count+2)
	for i := range corners {
		corners[i] = hertz(most * float64(i) / float64(count+1))
	}
	out := make([]band, count)
	for i := range out {
		low, middle, high := corners[i], corners[i+1], corners[i+2]
		for bin := range bins {
			f := float64(bin) * Rate / window
			w := min((f-low)/(middle-low), (high-f)/(high-middle)) * 2 / (high - low)
			if w <= 0 {
				continue
			}
			if out[i].weights == nil {
				out[i].first = bin
			}
			out[i].weights = append(out[i].weights, w)
		}
	}
	return out
}

// Features is the spectrogram of a piece, frame by frame: silence fills what it
// lacks of its length, and what is 8 decades below the greatest is that.
func (x *Extractor) Features(samples []float32) []float32 {
	samples = samples[:min(len(samples), x.length)]
	out := make([]float32, x.Frames()*x.bands)
	var f transform
	var frame [window]float64
	most, silent := math.Inf(-1), math.Log10(1e-10)
	for t := range x.Frames() {
		row := out[t*x.bands:][:x.bands]
		if t*hop-window/2 >= len(samples) && t*hop+window/2 <= x.length { // nothing is heard any more
			for b := range row {
				row[b] = float32(silent)
			}
			most = max(most, silent)
			continue
		}
		for i := range frame {
			frame[i] = x.hann[i] * x.sample(samples, t*hop+i-window/2)
		}
		power := f.power(&frame)
		for b, band := range x.filter {
			var sum float64
			for i, w := range band.weights {
				sum += w * power[band.first+i]
			}
			v := math.Log10(max(sum, 1e-10))
			most = max(most, v)
			row[b] = float32(v)
		}
	}
	for i, v := range out {
		out[i] = (max(v, float32(most-8)) + 4) / 4
	}
	return out
}

// sample is that of a place; both ends are mirrored.
func (x *Extractor) sample(samples []float32, at int) float64 {
	if at < 0 {
		at = -at
	}
	if at >= x.length {
		at = 2*(x.length-1) - at
	}
	if at < 0 || at >= len(samples) {
		return 0
	}
	return float64(samples[at])
}

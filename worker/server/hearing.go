package server

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"

	"roundhouse/worker"
	"roundhouse/worker/sound"
	"roundhouse/worker/speech"
)

// Media is what a model reads besides text.
type Media struct {
	Sight   *Sight   // nil: it reads text only
	Hearing *Hearing // nil: it writes down no speech
}

// Hearing is how a model's sound is read and written down.
type Hearing struct {
	Words     *speech.Words
	Extractor *sound.Extractor
	Rows      int          // that the encoder makes of a piece
	Bytes     int64        // of one file
	Sound     sound.Limits // of one file, as decoded

	Decoding chan struct{} // holds one for each file that is being decoded
}

// decode reads a file and cuts it into pieces.
func (h *Hearing) decode(data []byte) ([][]float32, *apiError) {
	h.Decoding <- struct{}{}
	defer func() { <-h.Decoding }()
	samples, failed := sound.Decode(data, h.Sound)
	if failed != nil {
		var told *sound.Error
		if errors.As(failed, &told) {
			return nil, badValue("file", "%s", told.Error())
		}
		return nil, badValue("file", "the sound cannot be read")
	}
	return sound.Cut(samples, h.Extractor.Samples()), nil
}

// item is a piece of sound as the engine takes it.
func (h *Hearing) item(samples []float32) worker.Item {
	digest := sha256.New()
	digest.Write([]byte("sound"))
	var b [4]byte
	for _, v := range samples {
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(v))
		digest.Write(b[:])
	}
	it := worker.Item{Lines: h.Rows, Line: 1, Input: func() (worker.TowerInput, error) {
		return worker.TowerInput{Features: h.Extractor.Features(samples), Frames: h.Extractor.Frames()}, nil
	}}
	digest.Sum(it.Digest[:0])
	return it
}

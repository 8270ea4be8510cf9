package sound

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// The codings of WAV files that are read.
const (
	wavPCM        = 1
	wavFloat      = 3
	wavALaw       = 6
	wavMuLaw      = 7
	wavExtensible = 0xFFFE
)

// wav is what the chunk "fmt " says.
type wav struct {
	coding, channels, rate, bits int

	known bool
}

// openWAV finds the chunks of a WAV file. A length of data that the file does not
// have, as streams write it, means all that is there.
func openWAV(data []byte) (*source, error) {
	var w wav
	for at := 12; at+8 <= len(data); {
		id, size := string(data[at:at+4]), int64(binary.LittleEndian.Uint32(data[at+4:]))
		body := data[at+8:]
		if id == "data" {
			if !w.known {
				return nil, errors.New("its data stands before its format")
			}
			if size > 0 && size < int64(len(body)) {
				body = body[:size]
			}
			return w.source(body)
		}
		if size > int64(len(body)) {
			return nil, errCut
		}
		if id == "fmt " {
			if err := w.read(body[:size]); err != nil {
				return nil, err
			}
		}
		at += 8 + int(size+size%2)
	}
	return nil, errors.New("it has no data")
}

func (w *wav) read(b []byte) error {
	if len(b) < 16 {
		return errCut
	}
	w.known = true
	w.coding, w.channels = int(binary.LittleEndian.Uint16(b)), int(binary.LittleEndian.Uint16(b[2:]))
	w.rate, w.bits = int(int32(binary.LittleEndian.Uint32(b[4:]))), int(binary.LittleEndian.Uint16(b[14:]))
	if w.coding == wavExtensible && len(b) >= 26 {
		w.coding = int(binary.LittleEndian.Uint16(b[24:]))
	}
	return nil
}

// source decodes samples of a known coding.
func (w *wav) source(body []byte) (*source, error) {
	one, size := w.sample()
	if one == nil {
		return nil, refuse("the WAV file has coding %d with %d bits; read are PCM of 8, 16, 24 and 32, floats of 32 and 64, A-law and µ-law", w.coding, w.bits)
	}
	if w.channels < 1 || w.channels > mostChannels {
		return nil, refuse("the sound has %d channels; read are 1 to %d", w.channels, mostChannels)
	}
	each := size * w.channels
	part := make([]float32, 0, 1024*w.channels)
	return &source{rate: w.rate, channels: w.channels, frames: int64(len(body) / each), next: func() ([]float32, error) {
		part = part[:0]
		for n := 0; n < 1024 && len(body) >= each; n++ {
			for range w.channels {
				part, body = append(part, one(body)), body[size:]
			}
		}
		if len(body) < each {
			return part, io.EOF
		}
		return part, nil
	}}, nil
}

// sample reads one sample, from -1 to 1, of so many bytes; nil: there is no such
// coding.
func (w *wav) sample() (one func(b []byte) float32, size int) {
	switch [2]int{w.coding, w.bits} {
	case [2]int{wavPCM, 8}:
		return func(b []byte) float32 { return (float32(b[0]) - 128) / 128 }, 1
	case [2]int{wavPCM, 16}:
		return func(b []byte) float32 { return float32(int16(binary.LittleEndian.Uint16(b))) / (1 << 15) }, 2
	case [2]int{wavPCM, 24}:
		return func(b []byte) float32 {
			return float32(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24)>>8) / (1 << 23)
		}, 3
	case [2]int{wavPCM, 32}:
		return func(b []byte) float32 { return float32(float64(int32(binary.LittleEndian.Uint32(b))) / (1 << 31)) }, 4
	case [2]int{wavFloat, 32}:
		return func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }, 4
	case [2]int{wavFloat, 64}:
		return func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) }, 8
	case [2]int{wavALaw, 8}:
		return func(b []byte) float32 { return aLaw(b[0]) }, 1
	case [2]int{wavMuLaw, 8}:
		return func(b []byte) float32 { return muLaw(b[0]) }, 1
	}
	return nil, 0
}

// aLaw and muLaw are G.711's: a sign, three bits of exponent, four of mantissa.
func aLaw(b byte) float32 {
	b ^= 0x55
	exponent, mantissa := b>>4&7, int(b&15)<<4|8
	if exponent > 0 {
		mantissa = (mantissa | 0x100) << (exponent - 1)
	}
	if b&0x80 == 0 {
		mantissa = -mantissa
	}
	return float32(mantissa) / (1 << 15)
}

func muLaw(b byte) float32 {
	b = ^b
	value := (int(b&15)<<3|0x84)<<(b>>4&7) - 0x84
	if b&0x80 != 0 {
		value = -value
	}
	return float32(value) / (1 << 15)
}

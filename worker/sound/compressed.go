package sound

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/hajimehoshi/go-mp3"
	"github.com/jfreymuth/oggvorbis"
	"github.com/mewkiz/flac"
	"github.com/pion/opus"
	"github.com/pion/opus/pkg/oggreader"
)

func openFLAC(data []byte) (*source, error) {
	stream, err := flac.New(reader(data))
	if err != nil {
		return nil, err
	}
	info := stream.Info
	s := &source{rate: int(info.SampleRate), channels: int(info.NChannels), frames: int64(min(info.NSamples, 1<<62))}
	var part []float32
	scale := 1 / float32(uint64(1)<<max(info.BitsPerSample, 1)>>1)
	s.next = func() ([]float32, error) {
		f, err := stream.ParseNext()
		if err != nil {
			return nil, err
		}
		if len(f.Subframes) != s.channels {
			return nil, errors.New("its channels change")
		}
		part = part[:0]
		for i := range f.Subframes[0].Samples {
			for _, c := range f.Subframes {
				if i >= len(c.Samples) {
					return nil, errCut
				}
				part = append(part, float32(c.Samples[i])*scale)
			}
		}
		return part, nil
	}
	return s, nil
}

// isMP3 finds tags or the beginning of a frame of layer III.
func isMP3(data []byte) bool {
	return matches(data, "ID3") || len(data) > 4 && data[0] == 0xFF && data[1]&0xE6 == 0xE2
}

func openMP3(data []byte) (*source, error) {
	d, err := mp3.NewDecoder(reader(data))
	if err != nil {
		return nil, err
	}
	raw := make([]byte, 4*1152)
	part := make([]float32, 0, 2*1152)
	return &source{rate: d.SampleRate(), channels: 2, next: func() ([]float32, error) {
		n, err := io.ReadFull(d, raw)
		part = part[:0]
		for i := 0; i+1 < n; i += 2 {
			part = append(part, float32(int16(binary.LittleEndian.Uint16(raw[i:])))/(1<<15))
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		return part, err
	}}, nil
}

// openOgg looks at what the first packet is of.
func openOgg(data []byte) (*source, error) {
	head := data[:min(len(data), 512)]
	switch {
	case bytes.Contains(head, []byte("OpusHead")):
		return openOpus(data)
	case bytes.Contains(head, []byte("\x01vorbis")):
		return openVorbis(data)
	}
	return nil, refuse("the Ogg file holds neither Opus nor Vorbis, which are what is read of it")
}

func openVorbis(data []byte) (*source, error) {
	d, err := oggvorbis.NewReader(reader(data))
	if err != nil {
		return nil, err
	}
	part := make([]float32, 1024*max(1, d.Channels()))
	return &source{rate: d.SampleRate(), channels: d.Channels(), next: func() ([]float32, error) {
		n, err := d.Read(part)
		return part[:n], err
	}}, nil
}

// opusRate is the samples a second in which Opus counts.
const opusRate = 48_000

// mostPacket is the samples of the longest packet, 120 ms, at Rate.
const mostPacket = 120 * Rate / 1000

func openOpus(data []byte) (*source, error) {
	pages, head, err := oggreader.NewWith(reader(data))
	if err != nil {
		return nil, err
	}
	if head.Channels > 2 || head.ChannelMap != 0 {
		return nil, refuse("the Opus file has %d channels; read are 1 and 2", head.Channels)
	}
	if _, _, err := pages.ParseNextPacket(); err != nil { // of tags
		return nil, err
	}
	d, err := opus.NewDecoderWithOutput(Rate, 1)
	if err != nil {
		return nil, err
	}
	// The last packet's page says where the sound ends within it, so that each waits
	// until it is known whether one follows.
	packet, page, err := pages.ParseNextPacket()
	if err != nil {
		return nil, err
	}
	skip := int(head.PreSkip) * Rate / opusRate
	part, told := make([]float32, mostPacket), int64(0) // samples so far
	return &source{rate: Rate, channels: 1, next: func() ([]float32, error) {
		n, err := d.DecodeToFloat32(packet, part)
		if err != nil {
			return nil, err
		}
		out := part[min(skip, n):n]
		skip -= n - len(out)
		ends := (int64(page.GranulePosition) - int64(head.PreSkip)) * Rate / opusRate
		if packet, page, err = pages.ParseNextPacket(); errors.Is(err, io.EOF) && ends >= told {
			out = out[:min(int64(len(out)), ends-told)]
		}
		told += int64(len(out))
		return out, err
	}}, nil
}

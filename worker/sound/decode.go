package sound

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Rate is the samples a second that encoders of speech read.
const Rate = 16_000

// Error is a fault of what a client sent, told in words that it may read.
type Error struct{ message string }

func (e *Error) Error() string { return e.message }

func refuse(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Limits bound what is decoded.
type Limits struct {
	Seconds float64 // of one file
}

// Bounds of what a file says of itself.
const (
	leastRate    = 1_000
	mostRate     = 192_000
	mostChannels = 32
	mostIdle     = 1 << 12 // parts without a sample, one after the other
)

// source is a file that is being decoded: interleaved samples, a few at a time,
// and io.EOF at their end.
type source struct {
	rate, channels int
	frames         int64 // that the header promises; 0: it does not say
	next           func() ([]float32, error)
}

// format is a kind of file that is read.
type format struct {
	name  string
	magic func(data []byte) bool
	open  func(data []byte) (*source, error)
}

func formats() []format {
	begins := func(magic string) func([]byte) bool {
		return func(data []byte) bool { return matches(data, magic) }
	}
	return []format{
		{"WAV", begins("RIFF????WAVE"), openWAV},
		{"FLAC", begins("fLaC"), openFLAC},
		{"Ogg", begins("OggS"), openOgg},
		{"MP3", isMP3, openMP3},
	}
}

// matches compares a beginning; "?" stands for any byte.
func matches(data []byte, magic string) bool {
	if len(data) < len(magic) {
		return false
	}
	for i := range len(magic) {
		if magic[i] != '?' && data[i] != magic[i] {
			return false
		}
	}
	return true
}

// unread names kinds of files that people send and that are not read.
var unread = []struct{ name, magic string }{
	{"MP4 or M4A", "????ftyp"}, {"WebM or Matroska", "\x1a\x45\xdf\xa3"}, {"AIFF", "FORM????AIF"}, {"AU", ".snd"}, {"AMR", "#!AMR"}, {"CAF", "caff"},
	{"WMA", "\x30\x26\xb2\x75"}, {"big-endian WAV", "RIFX"}, {"RF64", "RF64"}, {"AAC", "\xff\xf1"}, {"AAC", "\xff\xf9"}, {"MIDI", "MThd"}, {"Wave64", "riff"},
}

// Decode reads a file into one channel of 16 kHz.
func Decode(data []byte, l Limits) (samples []float32, err error) {
	defer func() {
		if p := recover(); p != nil {
			samples, err = nil, refuse("the sound cannot be decoded: its data is damaged")
		}
	}()
	if len(data) == 0 {
		return nil, refuse("the sound file is empty")
	}
	for _, u := range unread {
		if matches(data, u.magic) {
			return nil, refuse("the sound is %s, which is not read; send WAV, FLAC, MP3, or Ogg with Opus or Vorbis", u.name)
		}
	}
	for _, f := range formats() {
		if !f.magic(data) {
			continue
		}
		s, err := f.open(data)
		if err == nil {
			samples, err = s.mono(l)
		}
		var told *Error
		if err != nil && !errors.As(err, &told) {
			err = refuse("the sound is no %s file that can be decoded: %.100s", f.name, strings.ToValidUTF8(err.Error(), ""))
		}
		return samples, err
	}
	return nil, refuse("the file is no sound that is read; send WAV, FLAC, MP3, or Ogg with Opus or Vorbis")
}

// mono decodes all, one channel of Rate.
func (s *source) mono(l Limits) ([]float32, error) {
	switch {
	case s.rate < leastRate || s.rate > mostRate:
		return nil, refuse("the sound has %d samples a second; read are %d to %d", s.rate, leastRate, mostRate)
	case s.channels < 1 || s.channels > mostChannels:
		return nil, refuse("the sound has %d channels; read are 1 to %d", s.channels, mostChannels)
	}
	most := int64(l.Seconds * float64(s.rate))
	long := refuse("the sound is longer than %g seconds, which this worker was started for", l.Seconds)
	if s.frames > most {
		return nil, long
	}
	r, frames, idle := newResampler(s.rate), int64(0), 0
	mixed := make([]float32, 0, 4096)
	for {
		part, err := s.next()
		if idle++; len(part) > 0 {
			idle = 0
		} else if idle > mostIdle {
			return nil, errors.New("much of it holds no sound")
		}
		if frames += int64(len(part) / s.channels); frames > most {
			return nil, long
		}
		mixed = mixed[:0]
		for ; len(part) >= s.channels; part = part[s.channels:] {
			sum := float32(0)
			for _, v := range part[:s.channels] {
				sum += sane(v)
			}
			mixed = append(mixed, sum/float32(s.channels))
		}
		r.add(mixed)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	out := r.end()
	if len(out) == 0 {
		return nil, refuse("the sound file has no samples")
	}
	return out, nil
}

// sane is a sample that arithmetic can go on with.
func sane(v float32) float32 {
	if v != v {
		return 0
	}
	return max(-16, min(v, 16))
}

// errCut is what is wrong with most damaged files.
var errCut = errors.New("it ends before its time")

// reader hides what else a bytes.Reader can do, so that decoders do not seek.
func reader(data []byte) io.Reader { return struct{ io.Reader }{bytes.NewReader(data)} }

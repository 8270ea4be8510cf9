package sound

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// golden is testdata/golden.json; fixtures.py says what is in it.
type golden struct {
	Mels []struct {
		Bands, Chunk, Every int
		Seconds             float64
		Frames              string
	}
	Cuts []struct {
		Seconds float64
		Longest int
		Lengths []int
	}
	Files []struct {
		Name    string
		Rate    int
		Seconds float64
		Exact   bool
		Data    []byte
	}
}

func readGolden(t testing.TB) *golden {
	t.Helper()
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	g := &golden{}
	if err := json.Unmarshal(data, g); err != nil {
		t.Fatal(err)
	}
	return g
}

// formula is the sound of fixtures.py.
func formula(seconds float64, rate, seed int) []float32 {
	out := make([]float32, int(seconds*float64(rate)))
	for i := range out {
		t := float64(i) / float64(rate)
		z := (uint64(i) + uint64(seed)*1000003) * 0x9E3779B97F4A7C15
		noise := float64((z^z>>29)>>40)/(1<<23) - 1
		v := 0.4*math.Sin(2*math.Pi*(200+150*t)*t)*(0.55+0.45*math.Sin(2*math.Pi*0.7*t)) + 0.02*noise
		if i%(rate/3) < 8 {
			v += 0.3
		}
		out[i] = float32(v)
	}
	return out
}

// melTolerance is how far a number of a spectrogram may be from transformers', where
// a decade is a quarter.
const melTolerance = 1e-4

// TestGoldenMel holds spectrograms to transformers' feature extractor.
func TestGoldenMel(t *testing.T) {
	for _, m := range readGolden(t).Mels {
		x, err := NewExtractor(nil, m.Bands, 100*m.Chunk)
		if err != nil {
			t.Fatal(err)
		}
		got := x.Features(formula(m.Seconds, Rate, 0))
		if len(got) != x.Frames()*m.Bands {
			t.Fatalf("%d numbers for %d frames of %d bands", len(got), x.Frames(), m.Bands)
		}
		data, err := base64.StdEncoding.DecodeString(m.Frames)
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for frame := 0; frame < x.Frames(); frame += m.Every {
			for band := range m.Bands {
				want := math.Float32frombits(binary.LittleEndian.Uint32(data))
				data = data[4:]
				worst = max(worst, math.Abs(float64(got[frame*m.Bands+band]-want)))
			}
		}
		if worst > melTolerance || len(data) > 0 {
			t.Errorf("%d bands, %g of %d seconds: off by %.2g, and %d bytes left; want at most %g", m.Bands, m.Seconds, m.Chunk, worst, len(data), melTolerance)
		}
	}
}

// TestGoldenCuts holds the cuts of long sound to vLLM's.
func TestGoldenCuts(t *testing.T) {
	for _, c := range readGolden(t).Cuts {
		var got []int
		for _, p := range Cut(formula(c.Seconds, Rate, 1), c.Longest*Rate) {
			got = append(got, len(p))
		}
		if !slices.Equal(got, c.Lengths) {
			t.Errorf("%g seconds in pieces of %d: %v; want %v", c.Seconds, c.Longest, got, c.Lengths)
		}
	}
}

// alike is how much of the greater one's power two sounds share, at the best of some
// delays.
func alike(a, b []float32, delays int) float64 {
	best := 0.0
	for d := -delays; d <= delays; d++ {
		var ab, aa, bb float64
		for i, v := range a {
			if k := i + d; k >= 0 && k < len(b) {
				ab, aa, bb = ab+float64(v)*float64(b[k]), aa+float64(v)*float64(v), bb+float64(b[k])*float64(b[k])
			}
		}
		if aa > 0 && bb > 0 {
			best = max(best, ab/math.Sqrt(aa*bb))
		}
	}
	return best
}

// TestGoldenFiles: every kind of file that libsndfile writes is read as the sound
// that it was made of.
func TestGoldenFiles(t *testing.T) {
	for _, f := range readGolden(t).Files {
		got, err := Decode(f.Data, Limits{Seconds: 1})
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		r := newResampler(f.Rate)
		r.add(formula(f.Seconds, f.Rate, 0))
		want := r.end()
		share, spare, delays := 0.97, 0.15, 2000 // coders lose what nobody hears, and add silence
		if f.Exact {
			share, spare, delays = 0.999999, 1.0/Rate, 1
		}
		if a := alike(want, got, delays); a < share {
			t.Errorf("%s: %.7f alike; want %g", f.Name, a, share)
		}
		if seconds := float64(len(got)) / Rate; math.Abs(seconds-f.Seconds) > spare {
			t.Errorf("%s: %g seconds; want %g", f.Name, seconds, f.Seconds)
		}
		if _, err := Decode(f.Data, Limits{Seconds: 0.05}); err == nil || !strings.Contains(err.Error(), "longer than 0.05 seconds") {
			t.Errorf("%s beyond the limit: %v", f.Name, err)
		}
		for n := range 40 { // cut anywhere: an error or less sound, in words for a client
			cut, err := Decode(f.Data[:len(f.Data)*n/40], Limits{Seconds: 1})
			if told := (*Error)(nil); err != nil && !errors.As(err, &told) || err == nil && len(cut) > len(got) {
				t.Errorf("%s cut at %d of 40: %d samples, %v", f.Name, n, len(cut), err)
			}
		}
	}
}

// TestResample: tones keep their shape to 60 dB, and what is above the new band
// leaves nothing that is louder than that.
func TestResample(t *testing.T) {
	for _, rate := range []int{8000, 11025, 22050, 24000, 44100, 48000, 96000, 44101} {
		tone := func(hertz float64) []float32 {
			in := make([]float32, rate/2)
			for i := range in {
				in[i] = float32(math.Sin(2 * math.Pi * hertz * float64(i) / float64(rate)))
			}
			r := newResampler(rate)
			for len(in) > 0 { // in uneven parts
				n := min(len(in), 777)
				r.add(in[:n])
				in = in[n:]
			}
			return r.end()
		}
		out := tone(1000)
		if n := Rate / 2; len(out) < n || len(out) > n+1 {
			t.Errorf("half a second of %d is %d samples", rate, len(out))
		}
		worst := 0.0
		for i := 1000; i < len(out)-1000; i++ {
			worst = max(worst, math.Abs(float64(out[i])-math.Sin(2*math.Pi*1000*float64(i)/Rate)))
		}
		if worst > 1e-3 {
			t.Errorf("a tone at %d is off by %.2g; want 60 dB", rate, worst)
		}
		if rate < 2*9000 {
			continue
		}
		out, worst = tone(8700), 0
		for _, v := range out[1000 : len(out)-1000] {
			worst = max(worst, math.Abs(float64(v)))
		}
		if worst > 1e-3 {
			t.Errorf("a tone above the band at %d leaves %.2g; want 60 dB", rate, worst)
		}
	}
}

// TestRefused: what is no sound that is read is told by name.
func TestRefused(t *testing.T) {
	f := func(want string, data string) {
		t.Helper()
		_, err := Decode([]byte(data), Limits{Seconds: 1})
		if told := (*Error)(nil); !errors.As(err, &told) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v; want %q", data, err, want)
		}
	}
	wav := func(coding, channels, bits uint16, rate uint32, body string) string {
		b := []byte("RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00")
		b = binary.LittleEndian.AppendUint16(b, coding)
		b = binary.LittleEndian.AppendUint16(b, channels)
		b = binary.LittleEndian.AppendUint32(b, rate)
		b = append(b, 0, 0, 0, 0, 0, 0)
		b = binary.LittleEndian.AppendUint16(b, bits)
		return string(b) + "data\xff\xff\xff\xff" + body
	}
	f("is empty", "")
	f("no sound that is read", "hello")
	f("is MP4 or M4A", "\x00\x00\x00\x20ftypM4A ")
	f("is WebM or Matroska", "\x1a\x45\xdf\xa3xxxx")
	f("is AAC", "\xff\xf1\x50\x80xxxx")
	f("is AIFF", "FORM\x00\x00\x00\x00AIFF")
	f("no WAV file that can be decoded: it has no data", "RIFF\x00\x00\x00\x00WAVE")
	f("stands before its format", "RIFF\x00\x00\x00\x00WAVEdata\x00\x00\x00\x00")
	f("ends before its time", "RIFF\x00\x00\x00\x00WAVEfmt \xff\x00\x00\x00")
	f("coding 85 with 16 bits", wav(85, 1, 16, 16000, "xx"))
	f("0 channels", wav(1, 0, 16, 16000, "xx"))
	f("500 channels", wav(1, 500, 16, 16000, "xx"))
	f("0 samples a second", strings.Replace(wav(1, 1, 16, 0x3e80, "xx"), "\x80\x3e", "\x00\x00", 1))
	f("400000 samples a second", wav(1, 1, 16, 400000, "xx"))
	f("has no samples", wav(1, 1, 16, 16000, ""))
	f("longer than 1 seconds", wav(1, 1, 8, 16000, strings.Repeat("\x80", 17000)))
	f("neither Opus nor Vorbis", "OggS\x00\x02xxxxxxxxxxxxxxxxxxxxx\x7fFLAC")
	if out, err := Decode([]byte(wav(wavFloat, 1, 32, 16000, "\x00\x00\xc0\x7f\x00\x00\x80\x7f")), Limits{Seconds: 1}); err != nil || out[0] != 0 || out[1] != 16 {
		t.Errorf("samples that are no numbers: %v, %v", out, err)
	}
}

// TestSettings: a feature extractor that computes otherwise is refused by name.
func TestSettings(t *testing.T) {
	f := func(want, config string) {
		t.Helper()
		_, err := NewExtractor([]byte(config), 80, 3000)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %q", config, err, want)
		}
	}
	f("", `{"feature_size":80,"chunk_length":30,"n_fft":400,"hop_length":160,"sampling_rate":16000,"mel_filters":[[0.5]],"nb_max_frames":3000}`)
	f("", `{}`)
	f("feature_size is 128", `{"feature_size":128}`)
	f("windows of 512 samples", `{"n_fft":512}`)
	f("of 8000 a second", `{"sampling_rate":8000}`)
	f("chunk_length is 20 seconds", `{"chunk_length":20}`)
	f("chunk_length is -9223372036854775808", `{"chunk_length":-9223372036854775808}`)
	f("dither", `{"dither":0.1}`)
	f("preprocessor_config.json", `[]`)
}

// FuzzDecode: no file crashes or takes more than its limit.
func FuzzDecode(f *testing.F) {
	for _, file := range readGolden(f).Files {
		f.Add(file.Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := Decode(data, Limits{Seconds: 2})
		if told := (*Error)(nil); err != nil && !errors.As(err, &told) {
			t.Errorf("an error in other words: %v", err)
		}
		if len(out) > 2*Rate+Rate/10 {
			t.Errorf("%d samples; the limit is two seconds", len(out))
		}
		for _, v := range out {
			if v != v || math.Abs(float64(v)) > 100 {
				t.Fatalf("a sample is %v", v)
			}
		}
	})
}

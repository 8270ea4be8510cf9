package media

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
)

// golden is testdata/golden.json; fixtures.py says what is in it.
type golden struct {
	Pillow, Transformers string
	Resizes              [][]any
	Files                []file
	Processors           []struct {
		Config json.RawMessage
		Grids  [][4]int
		Rows   [][]any
	}
}

// file is [name, base64, width, height, digest or pixels, exact].
type file struct {
	name, data    string
	width, height int
	result        string
	exact         bool
}

func (f *file) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&f.name, &f.data, &f.width, &f.height, &f.result, &f.exact})
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

// formula is the picture that fixtures.py calls pixels.
func formula(width, height, seed int) *Picture {
	p := &Picture{Width: width, Height: height, Pix: make([]byte, 3*width*height)}
	p.each(func(x, y int, to []byte) {
		slope := y * 191 / max(height, 1)
		if seed%2 == 1 {
			slope = x * 191 / max(width, 1)
		}
		for c := range to {
			z := uint64(x*7919+y*104729+c*1299709+seed) * 0x9e3779b97f4a7c15
			to[c] = byte(int(z>>58) + slope)
		}
	})
	return p
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

func number(v any) int { return int(v.(float64)) }

// TestResize: every pixel is Pillow's.
func TestResize(t *testing.T) {
	g := readGolden(t)
	if !strings.HasPrefix(g.Pillow, "13.") {
		t.Fatalf("the golden file is of Pillow %s, whose order of passes may be another", g.Pillow)
	}
	for _, r := range g.Resizes {
		p := formula(number(r[0]), number(r[1]), number(r[2])).Resize(number(r[3]), number(r[4]), Filter(number(r[5])))
		if got := digestOf(p.Pix); got != r[6] {
			t.Errorf("%v: pixels have digest %s", r, got)
		}
	}
	if len(g.Resizes) < 60 {
		t.Errorf("%d resizes; want 60 at least", len(g.Resizes))
	}
}

// TestFiles: a decoded file is what Pillow makes of it, upright and on white.
// Lossy files may differ by roundings.
func TestFiles(t *testing.T) {
	for _, f := range readGolden(t).Files {
		data, err := base64.StdEncoding.DecodeString(f.data)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Decode(data, Limits{})
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
			continue
		}
		w, h, err := Size(data, Limits{})
		if err != nil || p.Width != f.width || p.Height != f.height || w != f.width || h != f.height {
			t.Errorf("%s: %d by %d pixels, and %d by %d by its header (%v); want %d by %d", f.name, p.Width, p.Height, w, h, err, f.width, f.height)
			continue
		}
		if f.exact {
			if got := digestOf(p.Pix); got != f.result {
				t.Errorf("%s: pixels are not Pillow's", f.name)
			}
			continue
		}
		want, err := base64.StdEncoding.DecodeString(f.result)
		if err != nil {
			t.Fatal(err)
		}
		sum, most := 0, 0
		for i, v := range p.Pix {
			d := max(int(v)-int(want[i]), int(want[i])-int(v))
			sum, most = sum+d, max(most, d)
		}
		if mean := float64(sum) / float64(len(want)); mean >= 1 || most > 12 {
			t.Errorf("%s: pixels differ by %.2f in the mean and %d at most; want below 1 and 12", f.name, mean, most)
		}
	}
}

// TestProcessor: grids and rows of features are those of transformers, to the bit.
func TestProcessor(t *testing.T) {
	for _, c := range readGolden(t).Processors {
		p, err := NewProcessor(c.Config, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range c.Grids {
			if lines, line, err := p.Grid(g[0], g[1]); err != nil || lines != g[2] || line != g[3] {
				t.Errorf("%s: %d by %d pixels are %d by %d patches (%v); want %d by %d", c.Config, g[0], g[1], lines, line, err, g[2], g[3])
			}
		}
		for _, r := range c.Rows {
			pic, err := p.Fit(formula(number(r[0]), number(r[1]), number(r[2])))
			if err != nil {
				t.Fatal(err)
			}
			f := p.Features(pic)
			var raw []byte
			for _, v := range f.Rows {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
			}
			if f.Lines != number(r[3]) || f.Line != number(r[4]) || f.Width != p.Width() || digestOf(raw) != r[5] {
				t.Errorf("%s: %v: rows of %d by %d patches differ", c.Config, r, f.Lines, f.Line)
			}
		}
	}
}

// TestTargets holds the counts of rows that are published for common sizes.
func TestTargets(t *testing.T) {
	f := func(config string, width, height, want int) {
		t.Helper()
		p, err := NewProcessor([]byte(config), nil)
		if err != nil {
			t.Fatal(err)
		}
		lines, line, err := p.Grid(width, height)
		if rows := lines * line / p.Merge() / p.Merge(); err != nil || rows != want {
			t.Errorf("%s: %d by %d pixels are %d rows (%v); want %d", config, width, height, rows, err, want)
		}
	}
	const qwen2, tars = `{"min_pixels":3136,"max_pixels":12845056}`, `{"size":{"min_pixels":3136,"max_pixels":12845056}}`
	const qwen3 = `{"patch_size":16,"size":{"shortest_edge":65536,"longest_edge":16777216}}`
	for _, config := range []string{qwen2, tars} {
		f(config, 640, 480, 391)
		f(config, 1920, 1080, 2691)
		f(config, 2480, 3508, 11125)
		f(config, 200, 50, 14)
	}
	f(qwen3, 640, 480, 300)
	f(qwen3, 1920, 1080, 2040)
	f(qwen3, 2480, 3508, 8580)
	f(qwen3, 200, 50, 64)
}

// TestProcessorSettings: what cannot be followed is refused by name.
func TestProcessorSettings(t *testing.T) {
	f := func(config, over, want string) {
		t.Helper()
		_, err := NewProcessor([]byte(config), []byte(over))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s with %s: got %v; want %q", config, over, err, want)
		}
	}
	f(`{}`, ``, "")
	f(`{}`, `{"max_pixels":100352}`, "")
	f(`{`, ``, "unexpected end")
	f(`{}`, `{"max_pixels":"many"}`, "processor's settings")
	f(`{}`, `{"max_pixels":10}`, "10 pixels")
	f(`{"image_processor_type":"ViTImageProcessor"}`, ``, `"ViTImageProcessor" is not known`)
	f(`{"do_resize":false}`, ``, "do_resize")
	f(`{"resample":0}`, ``, "resample is 0")
	f(`{"patch_size":0}`, ``, "patch_size 0")
	f(`{"image_std":[0.5,0.5,0]}`, ``, "image_std")
}

// TestRefused: what is no picture, promises too much or too odd a one is refused
// in a sentence, without the memory that it asks for.
func TestRefused(t *testing.T) {
	f := func(data, want string) {
		t.Helper()
		_, err := Decode([]byte(data), Limits{Pixels: 10_000})
		var told *Error
		if !errors.As(err, &told) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v; want %q", data, err, want)
		}
	}
	f("", "0 bytes are no PNG, JPEG, WebP, GIF or BMP")
	f("hello", "5 bytes are no PNG")
	f("%PDF-1.4", "the image is PDF, which is not read")
	f("\x00\x00\x00\x18ftypheic", "the image is HEIC or AVIF")
	f("II*\x00rest", "the image is TIFF")
	f("\x89PNG\r\n\x1a\n", "cannot be read as PNG")
	f("\xff\xd8\xff\xe0\x00\x10", "cannot be read as JPEG")
	f("RIFF\x00\x00\x00\x00WEBPVP8L", "cannot be read as WebP")
	f("GIF89a\xff\xff\xff\xff\x00\x00\x00", "65535 by 65535 pixels; at most 10000")
	f("GIF89a\x00\x00\x01\x00\x00\x00\x00", "0 by 1 pixels")
	huge := "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x02\x00\x00\x00"
	f(huge, "")
	cut := readGolden(t).Files[0]
	data, err := base64.StdEncoding.DecodeString(cut.data)
	if err != nil {
		t.Fatal(err)
	}
	f(string(data[:len(data)/2]), "cannot be read as PNG")
	p, err := NewProcessor([]byte(`{}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Fit(&Picture{Width: 201, Height: 1, Pix: make([]byte, 603)}); err == nil || !strings.Contains(err.Error(), "201 by 1 pixels; one side may be at most 200 times") {
		t.Errorf("a line of pixels: %v", err)
	}
}

// TestDigest: it tells files and settings apart, and where one ends.
func TestDigest(t *testing.T) {
	processor := func(config string) *Processor {
		p, err := NewProcessor([]byte(config), nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	seen := map[Digest]bool{}
	for _, config := range []string{`{}`, `{"max_pixels":100352}`, `{"image_std":[0.5,0.5,0.5]}`} {
		for _, data := range []string{"", "a", "aa", "\x01\x00"} {
			seen[processor(config).Digest([]byte(data))] = true
		}
	}
	if len(seen) != 12 || processor(`{}`).Digest([]byte("a")) != processor(`{}`).Digest([]byte("a")) {
		t.Errorf("%d digests of 12 items", len(seen))
	}
}

// FuzzDecode: no file breaks a decoder otherwise than by an error that may be
// told, and what it accepts has the size that its header promises.
func FuzzDecode(f *testing.F) {
	for _, file := range readGolden(f).Files {
		data, err := base64.StdEncoding.DecodeString(file.data)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	p, err := NewProcessor([]byte(`{"max_pixels":20000}`), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := Limits{Pixels: 1 << 16}
		width, height, sizeErr := Size(data, limits)
		pic, err := Decode(data, limits)
		var told *Error
		if err != nil {
			if !errors.As(err, &told) {
				t.Fatalf("an error that is not to be told: %v", err)
			}
			return
		}
		if sizeErr != nil || pic.Width != width || pic.Height != height || len(pic.Pix) != 3*width*height {
			t.Fatalf("%d by %d pixels in %d bytes; the header promises %d by %d (%v)", pic.Width, pic.Height, len(pic.Pix), width, height, sizeErr)
		}
		if fit, err := p.Fit(pic); err == nil {
			if rows := p.Features(fit); len(rows.Rows) != rows.Count()*p.Width() {
				t.Fatalf("%d numbers in %d rows", len(rows.Rows), rows.Count())
			}
		}
	})
}

package wire

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

// pictures are files of 123 by 45 pixels, by kind. Of WebP and BMP there are
// headers alone.
func pictures(t testing.TB) map[string]string {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, 123, 45), color.Palette{color.Black, color.White})
	files := map[string]string{
		"VP8":             "RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x7b\x00\x2d\x00",
		"VP8L":            "RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f\x7a\x00\x0b\x00\x00\x00\x00\x00\x00",
		"VP8X":            "RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x7a\x00\x00\x2c\x00\x00",
		"BMP":             "BM" + strings.Repeat("\x00", 16) + "\x7b\x00\x00\x00\x2d\x00\x00\x00",
		"BMP upside down": "BM" + strings.Repeat("\x00", 16) + "\x7b\x00\x00\x00\xd3\xff\xff\xff",
	}
	var b bytes.Buffer
	for kind, encode := range map[string]func() error{
		"PNG":  func() error { return png.Encode(&b, img) },
		"JPEG": func() error { return jpeg.Encode(&b, img, nil) },
		"GIF":  func() error { return gif.Encode(&b, img, nil) },
	} {
		b.Reset()
		if err := encode(); err != nil {
			t.Fatal(err)
		}
		files[kind] = b.String()
	}
	files["JPEG with a preview"] = files["JPEG"][:2] + "\xff\xe1\x10\x00" + strings.Repeat("x", 0x0ffe) + files["JPEG"][2:]
	return files
}

// TestPixels: the size of a picture is read from its header, in a body of
// either API, and nothing is made of what has none.
func TestPixels(t *testing.T) {
	f := func(what, body string, media, pixels int) {
		t.Helper()
		var p Peek
		if err := PeekBody([]byte(body), &p); err != nil {
			t.Fatal(err)
		}
		if p.Media != media || p.Pixels != pixels {
			t.Errorf("%s: %d items without a size and %d pixels; want %d and %d", what, p.Media, p.Pixels, media, pixels)
		}
		for _, it := range p.Items {
			if text := body[it.From:it.To]; body[it.To] != '"' || strings.Trim(text[:8], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\\") != "" {
				t.Errorf("%s: an item is taken to be %.20q", what, text)
			}
		}
		if n := strings.Count(body, `"data`); len(p.Items) != n && what != "a short URL" {
			t.Errorf("%s: %d of %d items have a place", what, len(p.Items), n)
		}
	}
	for kind, file := range pictures(t) {
		text := base64.StdEncoding.EncodeToString([]byte(file + strings.Repeat("\x00", 256)))
		url := `{"image_url":{"url":"data:image/png;base64,` + text + `"}}`
		f(kind, `{"messages":[`+url+`]}`, 0, 123*45)
		f(kind+" twice", `{"messages":[`+url+`,`+url+`]}`, 0, 2*123*45)
		f(kind+" of Anthropic's", `{"messages":[{"data":"`+text+`"}]}`, 0, 123*45)
		f(kind+" with its slashes escaped", `{"messages":[`+strings.ReplaceAll(url, "/", `\/`)+`]}`, 0, 123*45)
	}
	noise := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("RIFF no picture"), 30))
	f("sound", `{"messages":[{"data":"`+noise+`"}]}`, 1, 0)
	f("a short URL", `{"messages":[{"url":"data:image/png;base64,"}]}`, 1, 0)
}

// FuzzPixels: whatever a string holds, looking at it ends with a size in bounds.
func FuzzPixels(f *testing.F) {
	for _, file := range pictures(f) {
		f.Add([]byte(base64.StdEncoding.EncodeToString([]byte(file))))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if n := pixels(text); n < 0 || n > 1<<32 {
			t.Fatalf("%d pixels", n)
		}
	})
}

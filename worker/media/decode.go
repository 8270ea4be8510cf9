package media

import (
	"bytes"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/webp"
)

// Picture is pixels of 8-bit RGB, line by line.
type Picture struct {
	Width, Height int
	Pix           []byte // 3 · Width · Height
}

// Error is a fault of what a client sent, told in words that it may read.
type Error struct{ message string }

func (e *Error) Error() string { return e.message }

func refuse(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Limits bound what is decoded.
type Limits struct {
	Pixels int // of one picture; 0: DefaultPixels
}

// DefaultPixels is the greatest picture that is decoded unless a setting says
// otherwise: more than any processor keeps, and little memory.
const DefaultPixels = 25_000_000

// format is a kind of file that is read.
type format struct {
	name   string
	magic  []string // "?" stands for any byte
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

func formats() []format {
	return []format{
		{"PNG", []string{"\x89PNG\r\n\x1a\n"}, png.DecodeConfig, png.Decode},
		{"JPEG", []string{"\xff\xd8\xff"}, jpeg.DecodeConfig, jpeg.Decode},
		{"GIF", []string{"GIF87a", "GIF89a"}, gif.DecodeConfig, gif.Decode},
		{"WebP", []string{"RIFF????WEBP"}, webp.DecodeConfig, webp.Decode},
		{"BMP", []string{"BM"}, bmp.DecodeConfig, bmp.Decode},
	}
}

// unread names kinds of files that people send and that are not read.
var unread = []struct{ name, magic string }{
	{"TIFF", "II*\x00"}, {"TIFF", "MM\x00*"}, {"HEIC or AVIF", "????ftyp"}, {"PDF", "%PDF"}, {"SVG", "<svg"}, {"SVG", "<?xml"},
	{"JPEG XL", "\xff\x0a"}, {"JPEG 2000", "\x00\x00\x00\x0cjP"},
}

func begins(data []byte, magic string) bool {
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

// formatOf knows a file by its first bytes, whatever it is called.
func formatOf(data []byte) (format, error) {
	for _, f := range formats() {
		for _, m := range f.magic {
			if begins(data, m) {
				return f, nil
			}
		}
	}
	for _, u := range unread {
		if begins(data, u.magic) {
			return format{}, refuse("the image is %s, which is not read; send PNG, JPEG, WebP, GIF or BMP", u.name)
		}
	}
	return format{}, refuse("the image's %d bytes are no PNG, JPEG, WebP, GIF or BMP", len(data))
}

// Size is the width and the height that a picture's header promises, turned as
// EXIF says. It is refused if its limits are passed.
func Size(data []byte, l Limits) (width, height int, err error) {
	_, c, turn, err := header(data, l)
	if turn > 4 {
		c.Width, c.Height = c.Height, c.Width
	}
	return c.Width, c.Height, err
}

// header reads a picture's header and holds it to the limits.
func header(data []byte, l Limits) (f format, c image.Config, turn int, err error) {
	defer caught(&err)
	if f, err = formatOf(data); err != nil {
		return f, c, 0, err
	}
	if c, err = f.config(bytes.NewReader(data)); err != nil {
		return f, image.Config{}, 0, refuse("the image cannot be read as %s: %v", f.name, err)
	}
	most := l.Pixels
	if most == 0 {
		most = DefaultPixels
	}
	if c.Width < 1 || c.Height < 1 || c.Width > most/c.Height {
		return f, image.Config{}, 0, refuse("the image has %d by %d pixels; at most %d are decoded", c.Width, c.Height, most)
	}
	return f, c, orientation(f.name, data), nil
}

// Decode reads a picture: of an animation the first frame.
func Decode(data []byte, l Limits) (p *Picture, err error) {
	defer caught(&err)
	f, c, turn, err := header(data, l)
	if err != nil {
		return nil, err
	}
	if f.name == "JPEG" {
		if err := scans(data); err != nil {
			return nil, err
		}
	}
	img, err := f.decode(bytes.NewReader(data))
	if err != nil {
		return nil, refuse("the image cannot be read as %s: %v", f.name, err)
	}
	if f.name == "GIF" {
		img = onScreen(img, c)
	}
	b := img.Bounds()
	if b.Dx() != c.Width || b.Dy() != c.Height {
		return nil, refuse("the image's header promises %d by %d pixels, and there are %d by %d", c.Width, c.Height, b.Dx(), b.Dy())
	}
	convert := colours(jpegColours)
	if f.name == "WebP" {
		convert = webpColours
	}
	return turned(rgb(img, convert), turn), nil
}

// mostScans bounds the passes of a progressive JPEG, each of which walks the
// whole picture however little it brings.
const mostScans = 100

// scans refuses a JPEG that begins more scans than pictures have.
func scans(data []byte) error {
	if n := bytes.Count(data, []byte{0xff, 0xda}); n > mostScans {
		return refuse("the image is a JPEG of %d scans; at most %d are decoded", n, mostScans)
	}
	return nil
}

// caught makes a decoder's panic an error: what it was given is a client's.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = refuse("the image cannot be decoded: it breaks its decoder")
	}
}

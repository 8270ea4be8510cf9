package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
)

// pictureHead is the bytes of a file in which its header is looked for. A JPEG may
// have its size behind a preview; its pixels are then not known.
const pictureHead = 16 << 10

// pixels is the pixels of a picture, by the header of the file in base64; 0 where
// it does not say. Nothing of the picture itself is read.
func pixels(text []byte) int {
	text = text[:min(len(text), pictureHead/3*4)]
	if bytes.IndexByte(text, '\\') >= 0 { // "\/", as some write a slash
		text = bytes.ReplaceAll(text, []byte(`\/`), []byte("/"))
	}
	head := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, _ := base64.StdEncoding.Decode(head, text) // what is wrong with it is the worker's to tell
	width, height := dimensions(head[:n])
	if width < 1 || height < 1 || width > 1<<16 || height > 1<<16 {
		return 0
	}
	return min(width*height, mostPixels)
}

// mostPixels is what models that see bring a greater picture down to.
const mostPixels = 1 << 24

// dimensions reads a picture's header.
func dimensions(b []byte) (width, height int) {
	big, little := binary.BigEndian, binary.LittleEndian
	has := func(magic string, n int) bool { return len(b) >= n && bytes.HasPrefix(b, []byte(magic)) }
	switch {
	case has("\x89PNG\r\n\x1a\n", 24):
		return int(big.Uint32(b[16:])), int(big.Uint32(b[20:]))
	case has("GIF8", 10):
		return int(little.Uint16(b[6:])), int(little.Uint16(b[8:]))
	case has("BM", 26):
		width, height = int(int32(little.Uint32(b[18:]))), int(int32(little.Uint32(b[22:])))
		return width, max(height, -height) // below 0: its lines stand upside down
	case has("RIFF", 30) && string(b[8:12]) == "WEBP":
		return webpDimensions(b)
	case has("\xff\xd8", 4):
		return jpegDimensions(b[2:])
	}
	return 0, 0
}

func webpDimensions(b []byte) (width, height int) {
	little := binary.LittleEndian
	switch string(b[12:16]) {
	case "VP8 ":
		return int(little.Uint16(b[26:]) & 0x3fff), int(little.Uint16(b[28:]) & 0x3fff)
	case "VP8L":
		bits := little.Uint32(b[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
	case "VP8X":
		return int(little.Uint32(b[24:])&0xffffff) + 1, int(little.Uint32(b[26:])>>8) + 1
	}
	return 0, 0
}

// jpegDimensions walks the segments to that of the frame.
func jpegDimensions(b []byte) (width, height int) {
	for range 64 {
		if len(b) < 9 || b[0] != 0xff {
			return 0, 0
		}
		marker, n := b[1], int(binary.BigEndian.Uint16(b[2:]))
		if marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc {
			return int(binary.BigEndian.Uint16(b[7:])), int(binary.BigEndian.Uint16(b[5:]))
		}
		if n < 2 || n+2 > len(b) {
			return 0, 0
		}
		b = b[n+2:]
	}
	return 0, 0
}

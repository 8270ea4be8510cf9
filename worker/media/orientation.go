package media

import (
	"bytes"
	"encoding/binary"
)

// orientation is the EXIF orientation of a file, 1 to 8: how it is to be turned
// to be seen upright. A file that says nothing sound is upright.
func orientation(format string, data []byte) int {
	switch format {
	case "JPEG":
		return exifOrientation(jpegExif(data))
	case "PNG":
		return exifOrientation(chunk(data, 8, "eXIf", binary.BigEndian))
	case "WebP":
		return exifOrientation(chunk(data, 12, "EXIF", binary.LittleEndian))
	}
	return 1
}

// jpegExif is the TIFF structure of a JPEG's EXIF segment, which stands before
// the picture; nil: there is none.
func jpegExif(data []byte) []byte {
	for at := 2; at+4 <= len(data) && data[at] == 0xff; {
		marker, n := data[at+1], int(binary.BigEndian.Uint16(data[at+2:]))
		if marker == 0xda || n < 2 || at+2+n > len(data) {
			return nil
		}
		segment := data[at+4 : at+2+n]
		if marker == 0xe1 && bytes.HasPrefix(segment, []byte("Exif\x00\x00")) {
			return segment[6:]
		}
		at += 2 + n
	}
	return nil
}

// chunk finds a chunk of a PNG, whose length stands before its name, or of a
// RIFF file, where it stands behind.
func chunk(data []byte, at int, name string, order binary.ByteOrder) []byte {
	riff := order == binary.ByteOrder(binary.LittleEndian)
	for at+8 <= len(data) {
		length, id := data[at:at+4], data[at+4:at+8]
		if riff {
			length, id = id, length
		}
		n := int(order.Uint32(length))
		if n > len(data)-at-8 {
			return nil
		}
		if string(id) == name {
			return bytes.TrimPrefix(data[at+8:at+8+n], []byte("Exif\x00\x00"))
		}
		at += 8 + n
		if riff {
			at += n % 2
		} else {
			at += 4 // its checksum
		}
	}
	return nil
}

// exifOrientation reads the tag from the first directory of a TIFF structure.
func exifOrientation(tiff []byte) int {
	if len(tiff) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.LittleEndian
	if tiff[0] == 'M' {
		order = binary.BigEndian
	}
	at := int(order.Uint32(tiff[4:]))
	if at < 8 || at+2 > len(tiff) {
		return 1
	}
	n := int(order.Uint16(tiff[at:]))
	for at += 2; n > 0 && at+12 <= len(tiff); n, at = n-1, at+12 {
		if order.Uint16(tiff[at:]) != 0x0112 {
			continue
		}
		if v := int(order.Uint16(tiff[at+8:])); v >= 1 && v <= 8 {
			return v
		}
		break
	}
	return 1
}

// turned is a picture as an orientation says it is to be seen.
func turned(p *Picture, how int) *Picture {
	if how <= 1 || how > 8 {
		return p
	}
	w, h := p.Width, p.Height
	out := &Picture{Width: w, Height: h, Pix: make([]byte, len(p.Pix))}
	if how > 4 {
		out.Width, out.Height = h, w
	}
	out.each(func(x, y int, to []byte) {
		switch how {
		case 2:
			x = w - 1 - x
		case 3:
			x, y = w-1-x, h-1-y
		case 4:
			y = h - 1 - y
		case 5:
			x, y = y, x
		case 6:
			x, y = y, h-1-x
		case 7:
			x, y = w-1-y, h-1-x
		case 8:
			x, y = w-1-y, x
		}
		copy(to, p.Pix[3*(y*w+x):][:3])
	})
	return out
}

package media

import (
	"image"
	"image/color"
)

// rgb is a decoded image as Pillow's RGB, with what is transparent on white.
func rgb(img image.Image, convert colours) *Picture {
	b := img.Bounds()
	p := &Picture{Width: b.Dx(), Height: b.Dy(), Pix: make([]byte, 3*b.Dx()*b.Dy())}
	switch img := img.(type) {
	case *image.YCbCr:
		fromYCbCr(p, img, convert)
	case *image.NYCbCrA:
		fromYCbCr(p, &img.YCbCr, convert)
		p.each(func(x, y int, to []byte) { blend(to, img.A[img.AOffset(b.Min.X+x, b.Min.Y+y)]) })
	case *image.CMYK:
		p.each(func(x, y int, to []byte) {
			i := img.PixOffset(b.Min.X+x, b.Min.Y+y)
			c, k := img.Pix[i:i+3], 255-int(img.Pix[i+3])
			for n := range to {
				to[n] = byte(k - div255(int(c[n])*k))
			}
		})
	default:
		p.each(func(x, y int, to []byte) { onWhite(to, img.At(b.Min.X+x, b.Min.Y+y)) })
	}
	return p
}

// each calls f for every pixel, with the place of its three bytes.
func (p *Picture) each(f func(x, y int, to []byte)) {
	for y := range p.Height {
		for x := range p.Width {
			f(x, y, p.Pix[3*(y*p.Width+x):][:3])
		}
	}
}

// onWhite writes a colour as it is seen on white, as Pillow pastes it: numbers of
// 16 bits by their upper half.
func onWhite(to []byte, c color.Color) {
	var r, g, b, a uint8
	switch c := c.(type) {
	case color.NRGBA:
		r, g, b, a = c.R, c.G, c.B, c.A
	case color.NRGBA64:
		r, g, b, a = uint8(c.R>>8), uint8(c.G>>8), uint8(c.B>>8), uint8(c.A>>8)
	default:
		n := color.NRGBA64Model.Convert(c).(color.NRGBA64)
		r, g, b, a = uint8(n.R>>8), uint8(n.G>>8), uint8(n.B>>8), uint8(n.A>>8)
	}
	to[0], to[1], to[2] = r, g, b
	blend(to, a)
}

// blend lays a pixel on white.
func blend(to []byte, alpha uint8) {
	a := int(alpha)
	for i, v := range to {
		to[i] = byte(div255(255*(255-a) + int(v)*a))
	}
}

// div255 is v/255, rounded as Pillow rounds it.
func div255(v int) int {
	v += 128
	return (v>>8 + v) >> 8
}

// onScreen is the first frame of an animation on its whole screen, which is
// transparent elsewhere.
func onScreen(img image.Image, c image.Config) image.Image {
	b := img.Bounds()
	if b.Min.X == 0 && b.Min.Y == 0 && b.Dx() == c.Width && b.Dy() == c.Height {
		return img
	}
	screen := image.NewNRGBA(image.Rect(0, 0, c.Width, c.Height))
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			screen.Set(x, y, img.At(x, y))
		}
	}
	return screen
}

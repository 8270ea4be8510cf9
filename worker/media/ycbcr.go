package media

import "image"

// colours make red, green and blue of luma and of both kinds of chroma.
type colours func(to []byte, y, u, v int)

// jpegColours are libjpeg-turbo's, by its tables of 16 bits.
func jpegColours(to []byte, y, u, v int) {
	u, v = u-128, v-128
	to[0] = clamp8(y + (91881*v+32768)>>16)
	to[1] = clamp8(y + (-22554*u-46802*v+32768)>>16)
	to[2] = clamp8(y + (116130*u+32768)>>16)
}

// webpColours are libwebp's: its luma has the range of video, 16 to 235.
func webpColours(to []byte, y, u, v int) {
	y = y * 19077 >> 8
	to[0] = clamp8((y + v*26149>>8 - 14234) >> 6)
	to[1] = clamp8((y - u*6419>>8 - v*13320>>8 + 8708) >> 6)
	to[2] = clamp8((y + u*33050>>8 - 17685) >> 6)
}

// fromYCbCr widens the chroma as libjpeg-turbo and libwebp do, a weighted mean of
// the two nearest samples along each halved axis, where Go's own conversion
// repeats them.
func fromYCbCr(p *Picture, img *image.YCbCr, convert colours) {
	b := img.Bounds()
	cb, cr := newChroma(img, img.Cb), newChroma(img, img.Cr)
	for y := range p.Height {
		blue, red := cb.line(y), cr.line(y)
		luma := img.Y[img.YOffset(b.Min.X, b.Min.Y+y):]
		for x := range p.Width {
			convert(p.Pix[3*(y*p.Width+x):][:3], int(luma[x]), int(blue[x]), int(red[x]))
		}
	}
}

func clamp8(v int) byte { return byte(min(max(v, 0), 255)) }

// chroma is one plane of colour, which may have half the lines and columns.
type chroma struct {
	plane          []byte
	stride         int
	columns, lines int // of the plane
	halfX, halfY   bool
	repeat         func(x, y int) int // of other ratios: where a pixel's sample lies
	sums, out      []int
	width          int
}

func newChroma(img *image.YCbCr, plane []byte) *chroma {
	b := img.Bounds()
	c := &chroma{plane: plane, stride: img.CStride, width: b.Dx(), columns: b.Dx(), lines: b.Dy()}
	switch img.SubsampleRatio {
	case image.YCbCrSubsampleRatio444:
	case image.YCbCrSubsampleRatio422:
		c.halfX = true
	case image.YCbCrSubsampleRatio420:
		c.halfX, c.halfY = true, true
	default:
		c.repeat = func(x, y int) int { return img.COffset(b.Min.X+x, b.Min.Y+y) }
	}
	if c.halfX {
		c.columns = (c.columns + 1) / 2
	}
	if c.halfY {
		c.lines = (c.lines + 1) / 2
	}
	c.sums, c.out = make([]int, c.columns), make([]int, 2*c.columns+1)
	if len(c.out) < c.width {
		c.out = make([]int, c.width)
	}
	return c
}

// line is the samples of one line of the picture; it holds until the next call.
func (c *chroma) line(y int) []int {
	if c.repeat != nil {
		for x := range c.width {
			c.out[x] = int(c.plane[c.repeat(x, y)])
		}
		return c.out
	}
	if !c.halfX {
		for x := range c.width {
			c.out[x] = int(c.plane[y*c.stride+x])
		}
		return c.out
	}
	// The sums are of four parts where lines are halved, and of one otherwise.
	shift, low, high := 2, 1, 2
	near := y
	if c.halfY {
		near, shift, low, high = y/2, 4, 8, 7
	}
	other := min(max(near-1+2*(y%2), 0), c.lines-1)
	for x := range c.sums {
		c.sums[x] = int(c.plane[near*c.stride+x])
		if c.halfY {
			c.sums[x] = 3*c.sums[x] + int(c.plane[other*c.stride+x])
		}
	}
	for x, s := range c.sums {
		before, after := c.sums[max(x-1, 0)], c.sums[min(x+1, c.columns-1)]
		c.out[2*x], c.out[2*x+1] = (3*s+before+low)>>shift, (3*s+after+high)>>shift
	}
	return c.out
}

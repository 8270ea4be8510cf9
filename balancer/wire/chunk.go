package wire

import "errors"

// ErrChunk is returned for a chunked body that is not framed as RFC 9112 says.
var ErrChunk = errors.New("the chunked body is malformed")

// maxChunkLine bounds a chunk's size line with its extensions.
const maxChunkLine = 256

// Chunks decodes the chunked framing of a body that arrives in pieces. The
// zero value is ready. After an error it is of no further use.
type Chunks struct {
	state byte
	line  int    // bytes of the size line or of the trailers so far
	size  uint64 // bytes of the chunk still to come
	digit int

	// Trailer may refuse a trailer line; nil takes all.
	Trailer func(line []byte) error
	held    []byte // a trailer line that is not whole yet

	Wire int64 // framing bytes seen so far
}

const (
	chSize = iota
	chExt
	chSizeLF
	chData
	chDataCR
	chDataLF
	chTrailer
	chTrailerLF
	chDone
)

// Done reports whether the last chunk and the trailers are over.
func (c *Chunks) Done() bool { return c.state == chDone }

// Decode moves the payload in src to its front, in place. It returns how many
// bytes of payload there are now and how much of src was consumed; less than
// all of it only when the body is over.
func (c *Chunks) Decode(src []byte) (payload, used int, err error) {
	for used < len(src) && c.state != chDone {
		if c.state == chData {
			n := len(src) - used
			if uint64(n) > c.size {
				n = int(c.size)
			}
			if payload != used {
				copy(src[payload:], src[used:used+n])
			}
			payload += n
			used += n
			if c.size -= uint64(n); c.size == 0 {
				c.state = chDataCR
			}
			continue
		}
		if err := c.step(src[used]); err != nil {
			return payload, used, err
		}
		used++
		c.Wire++
	}
	return payload, used, nil
}

// Walk is Decode without moving anything: it checks the framing of src and
// counts its payload.
func (c *Chunks) Walk(src []byte) (payload, used int, err error) {
	for used < len(src) && c.state != chDone {
		if c.state == chData {
			n := int(min(uint64(len(src)-used), c.size))
			payload += n
			used += n
			if c.size -= uint64(n); c.size == 0 {
				c.state = chDataCR
			}
			continue
		}
		if err := c.step(src[used]); err != nil {
			return payload, used, err
		}
		used++
		c.Wire++
	}
	return payload, used, nil
}

// step takes one byte of the framing.
func (c *Chunks) step(b byte) error {
	switch c.state {
	case chSize:
		return c.sizeByte(b)
	case chExt:
		c.line++
		if b == '\r' {
			c.state = chSizeLF
			return nil
		}
		if c.line > maxChunkLine || b < 0x20 && b != '\t' || b == 0x7f {
			return ErrChunk
		}
	case chSizeLF:
		if b != '\n' {
			return ErrChunk
		}
		c.line, c.digit = 0, 0
		c.state = chData
		if c.size == 0 {
			c.state = chTrailer
		}
	case chDataCR:
		if b != '\r' {
			return ErrChunk
		}
		c.state = chDataLF
	case chDataLF:
		if b != '\n' {
			return ErrChunk
		}
		c.state = chSize
	case chTrailer:
		return c.trailerByte(b)
	case chTrailerLF:
		return c.trailerEnd(b)
	}
	return nil
}

func (c *Chunks) sizeByte(b byte) error {
	if d := unhex[b]; d >= 0 {
		if c.digit++; c.digit > 15 {
			return ErrChunk
		}
		c.size = c.size<<4 | uint64(d)
		return nil
	}
	if c.digit == 0 {
		return ErrChunk
	}
	switch b {
	case '\r':
		c.state = chSizeLF
	case ';':
		c.state = chExt
	default:
		return ErrChunk
	}
	return nil
}

func (c *Chunks) trailerByte(b byte) error {
	if b == '\r' {
		c.state = chTrailerLF
		return nil
	}
	if c.line++; c.line > 4096 || b == '\n' || b == 0 {
		return ErrChunk
	}
	c.held = append(c.held, b)
	return nil
}

func (c *Chunks) trailerEnd(b byte) error {
	if b != '\n' {
		return ErrChunk
	}
	if len(c.held) == 0 {
		c.state = chDone
		return nil
	}
	if c.Trailer != nil {
		if err := c.Trailer(c.held); err != nil {
			return err
		}
	}
	c.held = c.held[:0]
	c.state = chTrailer
	return nil
}

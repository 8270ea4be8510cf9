package conn

import (
	"strconv"

	"roundhouse/balancer/resume"
)

// Out gathers what one write carries to a client, with room in front for
// the head of a chunk.
type Out struct {
	resume.Out
	Head [HeadRoom]byte // where the head of an answer that does not stream is built
}

// ChunkHead is the room for a chunk's size line.
const ChunkHead = 10

// HeadRoom holds the head of nearly every answer.
const HeadRoom = 512

// LendOut returns an empty Out; Free takes it back.
func LendOut() *Out {
	o := outs.Get().(*Out)
	o.B = o.B[:ChunkHead]
	o.Forget()
	return o
}

// Free lets another write use the memory.
func (o *Out) Free() {
	if cap(o.B) <= 4*BufSize {
		outs.Put(o)
	}
}

// Framed returns what is gathered as one chunk, or as it is; nil where there
// is nothing.
func (o *Out) Framed(chunked bool) []byte {
	n := len(o.B) - ChunkHead
	if n == 0 {
		return nil
	}
	if !chunked {
		return o.B[ChunkHead:]
	}
	var line [ChunkHead]byte
	size := strconv.AppendInt(line[:0], int64(n), 16)
	from := ChunkHead - len(size) - 2
	copy(o.B[from:], size)
	copy(o.B[ChunkHead-2:], "\r\n")
	o.B = append(o.B, "\r\n"...)
	return o.B[from:]
}

package balancer

import (
	"strconv"
	"sync"

	"roundhouse/balancer/resume"
)

// outBuf gathers what one write carries to a client, with room in front for
// the head of a chunk.
type outBuf struct {
	resume.Out
	head [headRoom]byte // where the head of an answer that does not stream is built
}

// chunkHead is the room for a chunk's size line.
const chunkHead = 10

var outs = sync.Pool{New: func() any { return &outBuf{Out: resume.Out{B: make([]byte, 0, bufSize+4096)}} }}

func newOut() *outBuf {
	o := outs.Get().(*outBuf)
	o.B = o.B[:chunkHead]
	o.Forget()
	return o
}

func (o *outBuf) free() {
	if cap(o.B) <= 4*bufSize {
		outs.Put(o)
	}
}

// framed returns what is gathered as one chunk, or as it is; nil where there
// is nothing.
func (o *outBuf) framed(chunked bool) []byte {
	n := len(o.B) - chunkHead
	if n == 0 {
		return nil
	}
	if !chunked {
		return o.B[chunkHead:]
	}
	var line [chunkHead]byte
	size := strconv.AppendInt(line[:0], int64(n), 16)
	from := chunkHead - len(size) - 2
	copy(o.B[from:], size)
	copy(o.B[chunkHead-2:], "\r\n")
	o.B = append(o.B, "\r\n"...)
	return o.B[from:]
}

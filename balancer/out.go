package balancer

import (
	"strconv"
	"sync"

	"roundhouse/balancer/wire"
)

// outBuf gathers what one write carries to a client, with room in front for
// the head of a chunk.
type outBuf struct {
	b    []byte
	head [headRoom]byte // where the head of an answer that does not stream is built
	like wire.Alike     // the event before, while a stream's bytes are relayed
}

// chunkHead is the room for a chunk's size line.
const chunkHead = 10

var outs = sync.Pool{New: func() any { return &outBuf{b: make([]byte, 0, bufSize+4096)} }}

func newOut() *outBuf {
	o := outs.Get().(*outBuf)
	o.b = o.b[:chunkHead]
	o.like.Forget()
	return o
}

func (o *outBuf) free() {
	if cap(o.b) <= 4*bufSize {
		outs.Put(o)
	}
}

// framed returns what is gathered as one chunk, or as it is; nil where there
// is nothing.
func (o *outBuf) framed(chunked bool) []byte {
	n := len(o.b) - chunkHead
	if n == 0 {
		return nil
	}
	if !chunked {
		return o.b[chunkHead:]
	}
	var line [chunkHead]byte
	size := strconv.AppendInt(line[:0], int64(n), 16)
	from := chunkHead - len(size) - 2
	copy(o.b[from:], size)
	copy(o.b[chunkHead-2:], "\r\n")
	o.b = append(o.b, "\r\n"...)
	return o.b[from:]
}

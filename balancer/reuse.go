package balancer

import "sync"

// exchanges are used again: memory that is new for every request is cold, and
// takes the place of what is warm, here and in the processes beside.
var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// blank is an exchange that holds nothing of the request before. It is made so
// now, not when that ended: it warms what is about to be filled.
func blank() *exchange {
	x := exchanges.Get().(*exchange)
	b := &x.booking
	*x = exchange{booking: booking{hits: b.hits[:0], chunks: b.chunks[:0], tried: b.tried[:0], items: items{b.items.places[:0], b.items.digests[:0], b.items.looks[:0]}}}
	return x
}

// slotHits are lent for looking prompts up.
var slotHits = sync.Pool{New: func() any { return new([]int32) }}

// accessLines are lent for encoding a line.
var accessLines = sync.Pool{New: func() any { b := make([]byte, 0, 512); return &b }}

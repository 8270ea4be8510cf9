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
	*x = exchange{booking: booking{hits: b.hits[:0], chunks: b.chunks[:0], tried: b.tried[:0]}}
	return x
}

// free lets another request use an exchange that has ended, unless somebody
// may hold it still.
func (x *exchange) free() {
	if x.shown.Load() {
		return
	}
	exchanges.Put(x)
}

// show notes that somebody beside its own goroutine holds an exchange, which
// therefore serves no other request. Who takes one out of the list of what is in
// flight, or from its connection, calls it under the lock of that.
func (x *exchange) show() *exchange {
	x.shown.Store(true)
	return x
}

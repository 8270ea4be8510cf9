package lines

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// Late is how late a line is written at most, if the output takes it at once.
const Late = 100 * time.Millisecond

const (
	gather  = Late / 2        // leaves the other half to the scheduler and the write
	again   = time.Second     // after an output has refused lines
	full    = 64 << 10        // bytes that are written at once, without gathering more
	most    = 4 << 20         // bytes that wait at most
	closing = 5 * time.Second // how long Close waits for an output that is stuck
	keep    = 256 << 10       // of a buffer that was grown, between two batches
)

// Writer gathers lines and has them written. It is made by New.
type Writer struct {
	out  io.Writer
	tell func(dropped uint64, why string) []byte

	mu      sync.Mutex
	waiting []byte
	ended   bool
	dropped uint64
	why     string // the last reason that lines were dropped for

	wake chan struct{} // lines wait
	full chan struct{} // they are many, or the last
	done chan struct{}

	// The goroutine's own.
	spare []byte
	told  uint64 // of the dropped lines
	cut   bool   // the last line was written in part
}

// New makes a writer to out, which no other goroutine writes to. tell makes the
// line that says how many lines were dropped and why.
func New(out io.Writer, tell func(dropped uint64, why string) []byte) *Writer {
	w := &Writer{out: out, tell: tell, wake: make(chan struct{}, 1), full: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w
}

// Write takes whole lines. It never waits for the output and always succeeds:
// lines that do not fit are dropped and counted.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	first := len(w.waiting) == 0
	switch {
	case w.ended:
		w.drop(p, "the log is closed")
	case len(w.waiting)+len(p) > most:
		w.drop(p, "the output takes lines more slowly than they come")
	default:
		w.waiting = append(w.waiting, p...)
	}
	many := len(w.waiting) >= full
	w.mu.Unlock()
	if first {
		signal(w.wake)
	}
	if many {
		signal(w.full)
	}
	return len(p), nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// drop counts the lines of p as lost. w.mu is held.
func (w *Writer) drop(p []byte, why string) {
	w.dropped += uint64(max(1, bytes.Count(p, []byte{'\n'})))
	w.why = why
}

// Dropped is how many lines were lost so far.
func (w *Writer) Dropped() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Close writes the lines that are left and ends the writer. It gives an output
// that is stuck a few seconds.
func (w *Writer) Close() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	signal(w.wake)
	signal(w.full)
	select {
	case <-w.done:
	case <-time.After(closing):
	}
}

// run writes batches until the writer is closed.
func (w *Writer) run() {
	defer close(w.done)
	for {
		<-w.wake
		pause := gather
		for {
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-w.full:
				timer.Stop()
			}
			owed, ended := w.batch()
			if ended {
				return
			}
			if !owed {
				break
			}
			pause = again // the loss is told even if no line follows
		}
	}
}

// batch writes what waits. It reports whether a loss is still to be told, and
// whether this was the last batch.
func (w *Writer) batch() (owed, ended bool) {
	w.mu.Lock()
	lines := w.waiting
	w.waiting = w.spare[:0]
	ended = w.ended
	dropped, why := w.dropped, w.why
	w.mu.Unlock()
	if dropped > w.told {
		if !w.write(w.tell(dropped-w.told, why), false) {
			w.refused(lines)
			w.keep(lines)
			return true, ended
		}
		w.mu.Lock()
		w.told = dropped
		w.mu.Unlock()
	}
	ok := w.write(lines, true)
	w.keep(lines)
	return !ok, ended
}

// keep holds a buffer for the batch after the next, unless it was grown.
func (w *Writer) keep(lines []byte) {
	if w.spare = lines; cap(lines) > keep {
		w.spare = nil
	}
}

// write writes lines behind the end of a line that was cut, and reports whether
// all were taken. With count, the others are counted as dropped.
func (w *Writer) write(lines []byte, count bool) bool {
	if len(lines) == 0 {
		return true
	}
	if w.cut {
		if n, err := w.out.Write([]byte{'\n'}); n == 0 {
			w.failed(lines, count, err)
			return false
		}
		w.cut = false
	}
	n, err := w.out.Write(lines)
	if n >= len(lines) {
		return true
	}
	w.cut = n > 0 && lines[n-1] != '\n' || n == 0 && w.cut
	w.failed(lines[n:], count, err)
	return false
}

func (w *Writer) failed(rest []byte, count bool, err error) {
	if err == nil {
		err = io.ErrShortWrite
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.why = err.Error(); count {
		w.drop(rest, w.why)
	}
}

// refused counts lines as lost for the reason that those before them were.
func (w *Writer) refused(lines []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(lines) > 0 {
		w.drop(lines, w.why)
	}
}

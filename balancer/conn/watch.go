package conn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Watcher learns from the kernel which clients have left. fasthttp's context
// tells only that the server ends, and a silent stream would notice at its
// next write, which a long prefill puts off for minutes.
//
// A client that closes its sending side counts as gone: HTTP clients do not
// half-close.
type Watcher struct {
	ep   int
	stop int // an eventfd that ends run

	mu     sync.Mutex
	marked map[int32]watched
	gen    int32
}

// NewWatcher makes a watcher; Run is still to be called.
func NewWatcher() (*Watcher, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot watch connections: epoll_create1: %w", err)
	}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(ep)
		return nil, fmt.Errorf("cannot watch connections: eventfd: %w", err)
	}
	w := &Watcher{ep: ep, stop: stop, marked: map[int32]watched{}}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, stop, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(stop)}); err != nil {
		w.Close()
		return nil, fmt.Errorf("cannot watch connections: epoll_ctl: %w", err)
	}
	return w, nil
}

// watched is told when its client closes its side.
type watched interface{ Hangup() }

// Mark names a watch. gen tells its connection from the next one with the same
// descriptor; 0: nothing is watched.
type Mark struct {
	fd  int
	gen int32
}

// Add watches a connection, once for its whole life: the edge-triggered
// hang-up event costs nothing while the client stays. It reports whether the
// kernel will tell.
func (w *Watcher) Add(c net.Conn, who watched) (m Mark, ok bool) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return Mark{}, false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return Mark{}, false
	}
	raw.Control(func(fd uintptr) {
		w.mu.Lock()
		w.gen++
		m = Mark{int(fd), w.gen}
		w.marked[m.gen] = who
		w.mu.Unlock()
		ok = nil == unix.EpollCtl(w.ep, unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{
			Events: unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff, Fd: m.gen, Pad: 1,
		})
	})
	return m, ok
}

// Remove forgets a connection; the kernel drops it from the set as it closes.
func (w *Watcher) Remove(m Mark) {
	w.mu.Lock()
	delete(w.marked, m.gen)
	w.mu.Unlock()
}

// Unwatch ends the watch of a connection that another door has too: the kernel
// would go on telling this one of it.
func (w *Watcher) Unwatch(m Mark) {
	w.Remove(m)
	unix.EpollCtl(w.ep, unix.EPOLL_CTL_DEL, m.fd, nil)
}

// Run waits for hang-ups until close.
func (w *Watcher) Run() {
	events := make([]unix.EpollEvent, 64)
	for {
		n, err := unix.EpollWait(w.ep, events, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		for _, e := range events[:max(n, 0)] {
			if e.Pad == 0 {
				w.Close()
				return
			}
			w.mu.Lock()
			who := w.marked[e.Fd]
			w.mu.Unlock()
			if who != nil {
				who.Hangup()
			}
		}
	}
}

// End makes run return.
func (w *Watcher) End() {
	unix.Write(w.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// Close gives the descriptors of a watcher back that never ran.
func (w *Watcher) Close() {
	unix.Close(w.ep)
	unix.Close(w.stop)
}

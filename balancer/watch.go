package balancer

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// watcher learns from the kernel which clients have left. fasthttp's context
// tells only that the server ends, and a silent stream would notice at its
// next write, which a long prefill puts off for minutes.
//
// A client that closes its sending side counts as gone: HTTP clients do not
// half-close.
type watcher struct {
	ep   int
	stop int // an eventfd that ends run

	mu     sync.Mutex
	guards map[int32]*guard
	gen    int32
}

func newWatcher() (*watcher, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot watch connections: epoll_create1: %w", err)
	}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(ep)
		return nil, fmt.Errorf("cannot watch connections: eventfd: %w", err)
	}
	w := &watcher{ep: ep, stop: stop, guards: map[int32]*guard{}}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, stop, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(stop)}); err != nil {
		w.close()
		return nil, fmt.Errorf("cannot watch connections: epoll_ctl: %w", err)
	}
	return w, nil
}

// add watches a connection, once for its whole life: the edge-triggered
// hang-up event costs nothing while the client stays.
func (w *watcher) add(g *guard) (ok bool) {
	conn := g.Conn
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) {
		w.mu.Lock()
		w.gen++
		g.fd, g.gen = int(fd), w.gen
		w.guards[g.gen] = g
		w.mu.Unlock()
		ok = nil == unix.EpollCtl(w.ep, unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{
			Events: unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff, Fd: g.gen, Pad: 1,
		})
	})
	return ok
}

// remove forgets a connection; the kernel drops it from the set as it closes.
func (w *watcher) remove(g *guard) {
	w.mu.Lock()
	delete(w.guards, g.gen)
	w.mu.Unlock()
}

// unwatch ends the watch of a connection that another door has too: the kernel
// would go on telling this one of it.
func (w *watcher) unwatch(g *guard) {
	w.remove(g)
	unix.EpollCtl(w.ep, unix.EPOLL_CTL_DEL, g.fd, nil)
}

// run waits for hang-ups until close.
func (w *watcher) run() {
	events := make([]unix.EpollEvent, 64)
	for {
		n, err := unix.EpollWait(w.ep, events, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		for _, e := range events[:max(n, 0)] {
			if e.Pad == 0 {
				w.close()
				return
			}
			w.mu.Lock()
			g := w.guards[e.Fd]
			w.mu.Unlock()
			if g != nil {
				g.hangup()
			}
		}
	}
}

// end makes run return.
func (w *watcher) end() {
	unix.Write(w.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

func (w *watcher) close() {
	unix.Close(w.ep)
	unix.Close(w.stop)
}

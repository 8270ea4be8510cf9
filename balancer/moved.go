package balancer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/balancer/control"
)

// takeConnections is the other end of a connMover: it takes idle connections in
// until the door that leaves has ended.
func (d *Door) takeConnections(w http.ResponseWriter, r *http.Request) {
	if d.draining.Load() || r.Header.Get("Upgrade") != moveProtocol || r.Header.Get("Listen") != d.Listen() {
		control.Fail(w, http.StatusConflict, "this door takes the connections of another listener, or none any more")
		return
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		control.Fail(w, http.StatusConflict, "connections come over the private socket alone")
		return
	}
	c, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	uc, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return
	}
	d.wg.Go(func() {
		defer uc.Close()
		over := make(chan struct{})
		defer close(over)
		d.wg.Go(func() {
			select {
			case <-d.ctx.Done():
				uc.Close()
			case <-over:
			}
		})
		uc.SetDeadline(time.Time{})
		fmt.Fprintf(uc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", moveProtocol)
		if err := d.receiveMoved(uc); err != nil && d.ctx.Err() == nil {
			d.log.Warn("idle connections of another door were not taken", "error", err.Error())
		}
	})
}

// receiveMoved takes messages until the other door closes.
func (d *Door) receiveMoved(c *net.UnixConn) error {
	buf, oob := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*movedAtOnce))
	for {
		var fds []int
		n := 0
		for n == 0 || buf[n-1] != '\n' {
			if n == len(buf) {
				return errors.New("a message is too long")
			}
			got, rights, _, _, err := c.ReadMsgUnix(buf[n:], oob)
			fds = append(fds, descriptors(oob[:rights])...)
			if err != nil || got == 0 {
				closeAll(fds)
				return nil // the other door has ended
			}
			n += got
		}
		var about []control.MovedConn
		if err := json.Unmarshal(buf[:n], &about); err != nil || len(about) != len(fds) {
			closeAll(fds)
			return fmt.Errorf("%d descriptors came with %d descriptions: %w", len(fds), len(about), err)
		}
		taken := 0
		for taken < len(fds) && d.settle(about[taken], fds[taken]) {
			taken++
		}
		closeAll(fds[taken:])
		if _, err := fmt.Fprintf(c, "{\"taken\":%d}\n", taken); err != nil {
			return err
		}
	}
}

// descriptors reads the file descriptors that came with a message.
func descriptors(oob []byte) (fds []int) {
	all, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range all {
		if got, err := syscall.ParseUnixRights(&all[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	return fds
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// settle puts one connection to where it belongs. It reports whether the
// descriptor is taken care of.
func (d *Door) settle(about control.MovedConn, fd int) bool {
	if about.Worker == "" && (d.draining.Load() || !d.room()) {
		return false
	}
	f := os.NewFile(uintptr(fd), "moved")
	c, err := net.FileConn(f)
	f.Close()
	if err != nil {
		d.log.Warn("a moved connection is none", "error", err.Error())
		return true
	}
	if about.Worker == "" {
		g := d.guardOf(c, nil)
		g.served, g.proxied = about.Served, about.Client
		d.conns.add(g)
		go d.serve(g)
		return true
	}
	for _, w := range d.current().workers {
		if w.ID != about.Worker {
			continue
		}
		up, generation := w.Listens()
		if generation == about.Generation && !up.TLS && up.Addr == about.Address {
			up.Adopt(c, d.now()-about.IdleMillis*1e6)
			return true
		}
	}
	c.Close()
	return true
}

package balancer

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/balancer/conn"
	"roundhouse/balancer/control"
)

// The bounds of moving idle connections.
const (
	movedAtOnce = 64              // descriptors in one message; the kernel takes 253
	moveWithin  = 2 * time.Second // one message and its answer
	gatherLooks = 100             // a millisecond each, until the clients that wait are found
	moveEvery   = 20 * time.Millisecond
	settleTries = 20 // a millisecond each
)

// moveProtocol is what the two doors upgrade the private socket to.
const moveProtocol = "roundhouse-connections"

// connMover gives the idle connections of a door that leaves to the next one: those
// to workers, and those of clients between two requests. The descriptors go
// over the next door's private socket, so that no peer sees anything of it, and
// what a client sends meanwhile waits in its socket for the next door. A TLS
// connection cannot be moved, for its keys are in this process.
type connMover struct {
	d      *common
	within time.Duration // one message, and its answer
	conn   *net.UnixConn
	acks   *bufio.Reader
	wake   chan struct{}
	stop   chan struct{}
	done   chan struct{}

	mu     sync.Mutex
	over   bool // nothing is moved any more
	parked []*parked
}

// parked is a client's connection whose reader waits for it to be moved.
type parked struct {
	g     *guard
	moved chan bool
}

// findSuccessor looks for the door that takes the connections on a door's listener
// from now on, by the sockets beside its own, and makes ready to give it the idle ones.
func findSuccessor(d *common, own, listen string, within time.Duration) *connMover {
	if own == "" {
		return nil
	}
	all, err := filepath.Glob(filepath.Join(filepath.Dir(own), "*.sock"))
	if err != nil {
		d.log.Debug("cannot look for the next door", "error", err.Error())
	}
	for _, socket := range all {
		if socket == own {
			continue
		}
		m, err := moveTo(d, socket, listen, within)
		if err == nil {
			d.log.Info("idle connections move to the next door", "socket", filepath.Base(socket))
			return m
		}
		d.log.Debug("this door does not take idle connections", "socket", socket, "error", err.Error())
	}
	return nil
}

// moveTo asks one door to take idle connections.
func moveTo(d *common, socket, listen string, within time.Duration) (*connMover, error) {
	c, err := net.DialTimeout("unix", socket, within)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(within))
	_, err = fmt.Fprintf(c, "POST /connections HTTP/1.1\r\nHost: door\r\nConnection: Upgrade\r\nUpgrade: %s\r\nListen: %s\r\nContent-Length: 0\r\n\r\n", moveProtocol, listen)
	m := &connMover{d: d, within: within, conn: c.(*net.UnixConn), acks: bufio.NewReader(c), wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	var resp *http.Response
	if err == nil {
		resp, err = http.ReadResponse(m.acks, nil)
	}
	if err == nil && resp.StatusCode != http.StatusSwitchingProtocols {
		err = errors.New(resp.Status)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return m, nil
}

// start moves what is idle, and from then on whatever becomes it.
func (m *connMover) start() {
	d := m.d
	waiting := d.conns.list()
	for _, g := range waiting {
		g.nudge()
	}
	go m.run(waiting)
}

// end waits until nothing is moved any more. Connections whose readers wait are
// served here on.
func (m *connMover) end() {
	close(m.stop)
	<-m.done
	m.conn.Close()
}

func (m *connMover) run(waiting []*guard) {
	defer close(m.done)
	tick := time.NewTicker(moveEvery)
	defer tick.Stop()
	m.gather(waiting)
	for {
		if err := m.round(); err != nil {
			m.d.log.Warn("the next door takes no more idle connections; clients that are left come to it by themselves", "error", err.Error())
			m.finish()
			return
		}
		select {
		case <-m.stop:
			m.finish()
			return
		case <-m.wake:
		case <-tick.C:
		}
	}
}

// gather waits until the clients that were waiting are parked, or have sent
// something after all: only then is it known what this door needs for itself.
func (m *connMover) gather(waiting []*guard) {
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for range gatherLooks { // each by its tick: a machine under load may come to few in a tenth of a second
		rest := waiting[:0]
		for _, g := range waiting {
			g.mu.Lock()
			if g.resting {
				rest = append(rest, g)
			}
			g.mu.Unlock()
		}
		if waiting = rest; len(rest) == 0 {
			return
		}
		<-look.C
	}
}

// finish lets go of the readers that wait.
func (m *connMover) finish() {
	m.d.moves.Store(nil)
	m.mu.Lock()
	m.over = true
	left := m.parked
	m.parked = nil
	m.mu.Unlock()
	for _, p := range left {
		p.moved <- false
	}
}

// take gives a client's connection to the next door, and waits until it has it.
// Its reader calls it, between two requests.
func (m *connMover) take(g *guard) bool {
	if g.inside() {
		return false // its other end is in this process
	}
	p := &parked{g, make(chan bool, 1)}
	m.mu.Lock()
	if m.over {
		m.mu.Unlock()
		return false
	}
	m.parked = append(m.parked, p)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
	return <-p.moved
}

// round moves what is idle now, the connections to workers first, so that the
// next door has them before it has the clients.
func (m *connMover) round() error {
	m.mu.Lock()
	clients := m.parked
	m.parked = nil
	m.mu.Unlock()
	err := m.moveUpstreams(m.settled(len(clients)))
	for len(clients) > 0 {
		n := 0
		if err == nil {
			n, err = m.moveClients(clients[:min(len(clients), movedAtOnce)])
		}
		if n == 0 && err != nil {
			for _, p := range clients {
				p.moved <- false
			}
			return err
		}
		for _, p := range clients[:n] {
			p.moved <- true
		}
		clients = clients[n:]
	}
	return err
}

// settled is own when the requests that are just beginning or ending have done
// so, for otherwise too few connections would go with the clients.
func (m *connMover) settled(moving int) (keep int) {
	for range settleTries {
		m.mu.Lock()
		parked := moving + len(m.parked)
		m.mu.Unlock()
		if keep = m.own(parked); keep == 0 || moving == 0 {
			return keep
		}
		time.Sleep(time.Millisecond)
	}
	return keep
}

// own is how many connections to workers this door may still ask for: its
// clients that are not parked, less the requests that have one, or had one and
// are about to end.
func (m *connMover) own(parked int) int {
	d := m.d
	with := d.live.list(func(x *exchange) bool {
		at := x.record.state.Load()
		return at == phaseSent || at == phaseStreaming
	})
	return max(d.conns.count()-parked-len(with), 0)
}

// moveUpstreams moves the idle connections to workers, but for so many of each
// worker.
func (m *connMover) moveUpstreams(keep int) error {
	d := m.d
	for _, w := range d.current().workers {
		up, generation := w.Listens()
		if up.TLS {
			continue
		}
		for idle := up.Lend(keep); len(idle) > 0; {
			batch := idle[:min(len(idle), movedAtOnce)]
			about := make([]control.MovedConn, len(batch))
			socks := make([]*conn.Sock, len(batch))
			for i, c := range batch {
				about[i] = control.MovedConn{Worker: w.ID, Generation: generation, Address: up.Addr, IdleMillis: c.Idle(d.now()).Milliseconds()}
				socks[i] = &c.Sock
			}
			_, err := m.send(about, socks)
			for _, c := range batch {
				c.Close() // the next door has its own descriptor, or nobody wants the connection
			}
			if idle = idle[len(batch):]; err != nil {
				for _, c := range idle {
					c.Close()
				}
				return err
			}
		}
	}
	return nil
}

// moveClients moves parked clients and returns how many, from the first on.
func (m *connMover) moveClients(batch []*parked) (int, error) {
	about := make([]control.MovedConn, len(batch))
	socks := make([]*conn.Sock, len(batch))
	for i, p := range batch {
		about[i] = control.MovedConn{Served: p.g.served, Client: p.g.proxied}
		socks[i] = &p.g.Sock
	}
	n, err := m.send(about, socks)
	for _, p := range batch[:n] {
		m.d.watcher.Unwatch(p.g.watch.mark)
		m.d.conns.remove(p.g)
	}
	return n, err
}

// send passes connections on, each described, and returns how many of them,
// from the first on, the next door has taken. Nobody else closes them
// meanwhile.
func (m *connMover) send(about []control.MovedConn, socks []*conn.Sock) (int, error) {
	fds := make([]int, len(socks))
	for i, s := range socks {
		fd, err := s.Descriptor()
		if err != nil {
			return 0, err
		}
		fds[i] = fd
	}
	line, err := json.Marshal(about)
	if err != nil {
		return 0, err
	}
	m.conn.SetDeadline(time.Now().Add(m.within))
	if _, _, err := m.conn.WriteMsgUnix(append(line, '\n'), unix.UnixRights(fds...), nil); err != nil {
		return 0, err
	}
	var ack control.MovedAck
	line, err = m.acks.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &ack)
	}
	if n := min(max(ack.Taken, 0), len(socks)); err != nil || n < len(socks) {
		return n, errors.Join(err, fmt.Errorf("of %d connections it has taken %d", len(socks), n))
	}
	return len(socks), nil
}

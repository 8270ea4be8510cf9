package test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"roundhouse/test/ports"
)

// link is a TCP connection's way to a worker, which can be clogged: what is sent
// then waits, and nobody is told.
type link struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	open     chan struct{} // closed while the link is free
	conns    sync.WaitGroup
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &link{listener: l, to: to, open: make(chan struct{})}
	close(k.open)
	k.conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			k.conns.Go(func() { k.carry(c) })
		}
	})
	t.Cleanup(func() { l.Close() })
	return k
}

func (k *link) carry(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", k.to)
	if err != nil {
		return
	}
	defer to.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			defer way[1].(*net.TCPConn).CloseWrite()
			buf := make([]byte, 4096)
			for {
				n, err := way[0].Read(buf)
				k.wait()
				if _, writeErr := way[1].Write(buf[:n]); err != nil || writeErr != nil {
					return
				}
			}
		})
	}
	both.Wait()
}

func (k *link) wait() {
	k.mu.Lock()
	open := k.open
	k.mu.Unlock()
	<-open
}

func (k *link) clog() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open = make(chan struct{})
}

func (k *link) free() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.open)
}

// startWorker starts a worker that nobody supervises, and returns its address.
func startWorker(t *testing.T, args ...string) string {
	t.Helper()
	port := ports.Free(t)
	cmd := exec.Command(built.Path(t, "roundhouse-worker"), append([]string{"serve", "--host", "127.0.0.1", "--port", fmt.Sprint(port)}, args...)...)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// §6.25: the links to all workers are clogged one after the other, and freed one
// after the other in another order: streams wait, or go on elsewhere; every answer
// is whole and right.
func TestCloggedLinks(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 25))
	pool := "pool \"chat\" {\n  driver = \"static\"\n"
	var links []*link
	for i := range 3 {
		k := newLink(t, startWorker(t, "--device", "cpu", "--served-model-name", "roundhouse-demo", "--pace", "5ms"))
		links = append(links, k)
		pool += fmt.Sprintf("  worker \"w%d\" {\n    url = \"http://%s\"\n  }\n", i, k.listener.Addr())
	}
	s := start(t, pool+"}\n")
	// Such a pool's models are those that its workers tell the door of.
	var models string
	poll(t, "the door knows the model", func() bool {
		res, err := http.Get(s.Door + "/v1/models")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		models = string(text)
		return err == nil && strings.Contains(models, "roundhouse-demo")
	}, func() string { return models })
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	var answers tally
	answers.keep(ctx, t, s, 9)
	for range 2 {
		since := answers.whole.Load()
		poll(t, "answers under way", func() bool { return answers.whole.Load() > since+9 }, s.out.String)
		for _, i := range r.Perm(len(links)) {
			links[i].clog()
			<-time.After(time.Duration(100+r.IntN(400)) * time.Millisecond) // the fault is that time passes
		}
		for _, i := range r.Perm(len(links)) {
			links[i].free()
			<-time.After(time.Duration(100+r.IntN(400)) * time.Millisecond)
		}
	}
	answers.stop(t)
	s.waitReady()
}

package balancer

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/balancer/batch"
	"roundhouse/balancer/keyring"
	"roundhouse/balancer/pass"
	"roundhouse/balancer/surface"
	"roundhouse/balancer/wire"
)

// batches are the files and batches of a door. Their lines come to it as any request
// does, on a connection of its own making, and show a secret that this process alone
// knows in place of a key.
type batches struct {
	d       *common
	ctx     context.Context // the door's
	dir     string          // where they are kept; empty: they are not served
	secret  string
	client  *http.Client
	service atomic.Pointer[batch.Service]      // nil: the door has no folder for them
	tried   bool                               // of the goroutine that calls start
	going   atomic.Pointer[context.CancelFunc] // ends the sending of lines
	done    chan struct{}
}

func newBatches(d *common, ctx context.Context, dir string) *batches {
	var raw [20]byte
	_, _ = rand.Read(raw[:]) // ends the program rather than fail
	b := &batches{d: d, ctx: ctx, dir: dir, secret: "batch-" + hex.EncodeToString(raw[:]) + "-"}
	b.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return b.dial() }}}
	return b
}

// start begins to run what lies in the folder. The figures are those of the first
// configuration: they hold until the door is replaced.
func (b *batches) start() {
	cfg := &b.d.current().set.Door.Batches
	if b.tried || b.dir == "" || cfg.Concurrency == 0 || b.d.draining.Load() {
		return
	}
	b.tried = true
	s, err := batch.Open(b.dir, batch.Limits{Lines: cfg.Concurrency, Most: cfg.Lines, File: int64(cfg.File), Storage: int64(cfg.Storage),
		Keep: time.Duration(cfg.Keep), Window: time.Duration(cfg.Window)}, b.send, b.d.log)
	if err != nil {
		b.d.log.Error("files and batches are not served", "error", err.Error())
		return
	}
	ctx, cancel := context.WithCancel(b.ctx)
	b.done = make(chan struct{})
	b.going.Store(&cancel)
	b.service.Store(s)
	go func() {
		defer close(b.done)
		s.Run(ctx)
	}()
}

// rest sends no more lines; those that are under way are requests like any other, which
// a drain waits for.
func (b *batches) rest() {
	if s := b.going.Load(); s != nil {
		(*s)()
	}
}

// end lets go of the folder.
func (b *batches) end() {
	b.rest()
	if s := b.service.Load(); s != nil {
		<-b.done
		s.Close()
	}
}

// wants reports whether a path is served here.
func (b *batches) wants(path string) bool { return b.service.Load() != nil && batch.Serves(path) }

// serve answers a request for files or batches.
func (b *batches) serve(w http.ResponseWriter, r *http.Request, v *snapshot, seen *wire.Seen) {
	k, f := v.admit(seen.Authorization, seen.Key)
	if f == nil && v.ext != nil {
		f = &surface.Failure{Status: 404, Type: "invalid_request_error", Code: "not_found", Message: "files and batches are not served while filter plugins are set: they could not see a line as its client's"}
	}
	id := surface.RequestID(seen.RequestID)
	w.Header().Set("X-Request-Id", id)
	if f != nil {
		if f.Status == http.StatusUnauthorized {
			w.Header().Set("Www-Authenticate", "Bearer")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(f.Status)
		w.Write(f.JSON(""))
		return
	}
	c := batch.Caller{Owner: ownerOf(k, seen)}
	if k != nil {
		c.Key = k.Name
	}
	limits := limitsOf(&v.set.Door)
	r.Body = struct {
		io.Reader
		io.Closer
	}{&pass.Upload{Body: r.Body, Ctl: http.NewResponseController(w), Idle: limits.bodyIdle}, r.Body}
	b.service.Load().ServeHTTP(w, r, c)
}

// inside returns the key's name that a line of a batch is sent for.
func (b *batches) inside(authorization []byte) (name string, ok bool) {
	shown, ok := keyring.CutBearer(string(authorization))
	if !ok || len(shown) < len(b.secret) || subtle.ConstantTimeCompare([]byte(shown[:len(b.secret)]), []byte(b.secret)) != 1 {
		return "", false
	}
	return shown[len(b.secret):], true
}

// dial makes a connection to this very door: its listener may be another door's too,
// and speak TLS.
func (b *batches) dial() (net.Conn, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	var ends [2]net.Conn
	for i, fd := range pair {
		f := os.NewFile(uintptr(fd), "batch")
		ends[i], err = net.FileConn(f)
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	g := b.d.guardOf(ends[1], nil)
	b.d.conns.add(g)
	go b.d.serve(g)
	return ends[0], nil
}

// send has the door answer one line.
func (b *batches) send(ctx context.Context, key, path string, body []byte) (batch.Answer, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", "http://door"+path, bytes.NewReader(body))
	if err != nil {
		return batch.Answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+b.secret+key)
	req.Header.Set("X-Roundhouse-Priority", surface.PriorityNames[surface.Low])
	resp, err := b.client.Do(req)
	if err != nil {
		return batch.Answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return batch.Answer{}, err
	}
	after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return batch.Answer{Status: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id"), Body: text, RetryAfter: time.Duration(after) * time.Second}, nil
}

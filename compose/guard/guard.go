package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"roundhouse/worker/device"
)

const (
	// maxBody bounds what is read of a request's body.
	maxBody = 1 << 20
	// maxAnswer bounds what is read of an answer that the guard itself has asked for.
	maxAnswer = 8 << 20
	// askTimeout is how long the engine may take for such an answer.
	askTimeout = 10 * time.Second
)

// Guard is the handler that listens in the socket's place.
type Guard struct {
	policy func() *Policy
	cards  func() []device.GPU // of this machine
	engine *http.Client
	proxy  *httputil.ReverseProxy
	log    *slog.Logger

	mu  sync.Mutex
	ids map[string]map[string]bool // by pool, the identities that its image is known to have had
}

// New makes a guard before the engine that listens on a unix socket. The policy
// is asked for at every request, since a configuration changes while it runs.
func New(socket string, policy func() *Policy, log *slog.Logger) *Guard {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: askTimeout}).DialContext(ctx, "unix", socket)
	}}
	g := &Guard{
		policy: policy, engine: &http.Client{Transport: transport}, log: log, ids: map[string]map[string]bool{},
		cards: func() []device.GPU { return device.GPUs("/sys") },
	}
	g.proxy = &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		Rewrite: func(*httputil.ProxyRequest) {}, // it comes as it is to go
	}
	return g
}

// Close lets go of the connections to the engine that nobody uses.
func (g *Guard) Close() { g.engine.CloseIdleConnections() }

func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out, err := g.request(r)
	if err != nil {
		g.log.Warn("refused", "method", r.Method, "path", r.URL.Path, "why", err)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": "roundhouse docker-guard: " + err.Error()}) // the asker may be gone
		return
	}
	g.proxy.ServeHTTP(w, out)
}

// request makes the request that goes to the engine for one that came. Nothing of the
// latter is in it that was not read: neither its bytes nor its headers.
func (g *Guard) request(r *http.Request) (*http.Request, error) {
	version, order, err := g.allow(r)
	if err != nil {
		return nil, err
	}
	body := []byte(nil)
	if order.body != nil {
		if body, err = json.Marshal(order.body); err != nil {
			return nil, err
		}
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, "http://docker"+version+order.path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	out.URL.RawQuery = order.query.Encode()
	for name, values := range order.header {
		out.Header[name] = values
	}
	if body != nil {
		out.Header.Set("Content-Type", "application/json")
	}
	return out, nil
}

// ask asks the engine for what it knows of a thing, and reports whether it is there.
func (g *Guard) ask(ctx context.Context, path string, about any) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker"+path, nil)
	if err != nil {
		return false, err
	}
	res, err := g.engine.Do(req)
	if err != nil {
		return false, fmt.Errorf("the engine does not answer: %w", err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotFound:
		return false, nil
	case res.StatusCode != http.StatusOK:
		return false, fmt.Errorf("the engine says %s of %s", res.Status, path)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(about); err != nil {
		return false, fmt.Errorf("the engine's answer about %s: %w", path, err)
	}
	return true, nil
}

// decodeBody reads a request's body into a struct of the engine's own types.
func decodeBody(r *http.Request, out any) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return err
	}
	if len(body) > maxBody {
		return fmt.Errorf("a body of more than %d bytes", maxBody)
	}
	return decode(body, out)
}

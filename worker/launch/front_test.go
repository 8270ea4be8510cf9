package launch

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundhouse/test/ports"
	"roundhouse/test/selfsigned"
)

// ask makes one request of a client of its own and returns the answer.
func ask(t *testing.T, tr *http.Transport, method, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	defer tr.CloseIdleConnections()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, v, _ := strings.Cut(h, ": ")
		req.Header.Set(name, v)
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// start serves until stop is called, which returns what Serve did.
func start(t *testing.T, args ...string) (stop func() error) {
	t.Helper()
	o, err := ParseServe(args, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- Serve(ctx, o, slog.New(slog.NewTextHandler(&sees{"msg=ready", ready}, nil))) }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	return func() error { cancel(); return <-done }
}

// TestUnixSocket serves at --uds, takes over a socket that nobody serves any
// more, and leaves no socket behind.
func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "uds") // t.TempDir's names may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "w.sock")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reservePath(path); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a socket that is served: %v", err)
	}
	ln.SetUnlinkOnClose(false)
	_ = ln.Close()
	stop := start(t, "--uds", path)
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
	if resp, _ := ask(t, tr, "GET", "http://worker/health"); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := reservePath(path); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("a file in the way: %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "mine" {
		t.Error("a file that is no socket was removed")
	}
}

// TestTLS serves by HTTPS, and takes a new certificate while it does; a broken
// one changes nothing.
func TestTLS(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	cert, err := selfsigned.Write(first)
	if err != nil {
		t.Fatal(err)
	}
	next, err := selfsigned.Write(second)
	if err != nil {
		t.Fatal(err)
	}
	port := ports.Free(t)
	url := fmt.Sprintf("https://127.0.0.1:%d/health", port)
	stop := start(t, "--host", "127.0.0.1", "--port", fmt.Sprint(port), "--ssl-certfile", cert.Cert, "--ssl-keyfile", cert.Key, "--enable-ssl-refresh")
	healthy := func(c *selfsigned.Certificate) bool {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.Pool}}
		defer tr.CloseIdleConnections()
		resp, err := (&http.Client{Transport: tr}).Get(url)
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	}
	if !healthy(cert) || healthy(next) {
		t.Error("the server has not the certificate of its start")
	}
	write := func(file string, data []byte, at time.Time) {
		t.Helper()
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	write(cert.Cert, []byte("broken"), now.Add(time.Second))
	if !healthy(cert) {
		t.Error("a broken file ended the old certificate")
	}
	for from, to := range map[string]string{next.Key: cert.Key, next.Cert: cert.Cert} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(to, data, now.Add(2*time.Second))
	}
	if !healthy(next) {
		t.Error("the new certificate is not in use")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	o, err := ParseServe([]string{"--ssl-certfile", cert.Cert, "--ssl-keyfile", "/nowhere", "--port", "0"}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if err := Serve(context.Background(), o, quiet); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("a key that is not there: %v", err)
	}
}

// TestCORS has what a browser asks and is told, and a proxy's path.
func TestCORS(t *testing.T) {
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) })
	f := func(args, method, path, headers string, status int, want string) {
		t.Helper()
		o, err := ParseServe(strings.Fields(args), noEnv)
		if err != nil {
			t.Fatal(err)
		}
		hs := httptest.NewServer(o.CORS.wrap(belowRoot(o.RootPath, inner)))
		defer hs.Close()
		resp, body := ask(t, &http.Transport{}, method, hs.URL+path, strings.Split(headers, "|")...)
		h := resp.Header
		got := fmt.Sprintf("%s origin=%s vary=%s credentials=%s methods=%s headers=%s", strings.TrimSpace(body), h.Get("Access-Control-Allow-Origin"), h.Get("Vary"),
			h.Get("Access-Control-Allow-Credentials"), h.Get("Access-Control-Allow-Methods"), h.Get("Access-Control-Allow-Headers"))
		if resp.StatusCode != status || got != want {
			t.Errorf("%s %s %s: %d %s; want %d %s", args, method, headers, resp.StatusCode, got, status, want)
		}
	}
	const page = "Origin: https://a.b"
	before := page + "|Access-Control-Request-Method: POST|Access-Control-Request-Headers: authorization"
	none := " origin= vary= credentials= methods= headers="
	f("", "GET", "/x", page, 200, "/x"+none)
	f(`--allowed-origins ["*"]`, "GET", "/x", "X: y", 200, "/x"+none)
	f(`--allowed-origins ["*"]`, "GET", "/x", page, 200, "/x origin=* vary= credentials= methods= headers=")
	f(`--allowed-origins ["*"] --allow-credentials`, "GET", "/x", page+"|Cookie: c=d", 200, "/x origin=https://a.b vary=Origin credentials=true methods= headers=")
	f(`--allowed-origins ["https://a.b"]`, "GET", "/x", page, 200, "/x origin=https://a.b vary=Origin credentials= methods= headers=")
	f(`--allowed-origins ["https://c.d"]`, "GET", "/x", page, 200, "/x"+none)
	f(`--allowed-origins ["*"]`, "OPTIONS", "/x", before, 200, "OK origin=* vary= credentials= methods=DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT headers=authorization")
	f(`--allowed-origins ["https://c.d"]`, "OPTIONS", "/x", before, 400, "Disallowed CORS origin origin= vary= credentials= methods=DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT headers=authorization")
	f(`--allowed-origins ["*"] --allowed-methods ["GET"] --allowed-headers ["X-A"]`, "OPTIONS", "/x", before, 400, "Disallowed CORS method, headers origin=* vary= credentials= methods=GET headers=Accept, Accept-Language, Content-Language, Content-Type, X-A")
	f("--root-path /api/", "GET", "/api/v1/models", "X: y", 200, "/v1/models"+none)
	f("--root-path /api", "GET", "/v1/models", "X: y", 200, "/v1/models"+none)
	f("--root-path /api", "GET", "/apis", "X: y", 200, "/apis"+none)
}

package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Account is where the kubelet puts what a pod's account may show the API server.
const Account = "/var/run/secrets/kubernetes.io/serviceaccount"

// Options says where an API server is.
type Options struct {
	URL    string // of the server
	Folder string // with token, ca.crt and namespace; empty: Account
}

// InPod is the API server's URL as the environment of a cluster's pod says it.
func InPod(env func(string) (string, bool)) (string, error) {
	host, _ := env("KUBERNETES_SERVICE_HOST")
	port, _ := env("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return "", errors.New("this is no pod of a Kubernetes cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
	}
	return "https://" + net.JoinHostPort(host, port), nil
}

// Client asks an API server.
type Client struct {
	Namespace string // the program's own
	url       string
	folder    string

	mu    sync.Mutex
	http  *http.Client
	token string
	ca    string
	read  time.Time // when the files were read last
}

// rereads is how long a token and a certificate are used before their files are read
// again: they are renewed in place.
const rereads = time.Minute

// answersWithin is how long the server may take to begin an answer.
const answersWithin = 30 * time.Second

// New makes a client. It asks nothing yet.
func New(o Options) (*Client, error) {
	c := &Client{url: strings.TrimRight(o.URL, "/"), folder: o.Folder}
	if c.folder == "" {
		c.folder = Account
	}
	if err := c.refresh(); err != nil {
		return nil, err
	}
	namespace, err := os.ReadFile(filepath.Join(c.folder, "namespace"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	c.Namespace = strings.TrimSpace(string(namespace))
	return c, nil
}

// refresh reads the token and the certificate again. c.mu is held, or nobody else has c.
func (c *Client) refresh() error {
	if time.Since(c.read) < rereads && c.http != nil {
		return nil
	}
	token, err := os.ReadFile(filepath.Join(c.folder, "token"))
	if err != nil {
		return fmt.Errorf("the pod's account: %w", err)
	}
	ca, err := os.ReadFile(filepath.Join(c.folder, "ca.crt"))
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || strings.HasPrefix(c.url, "https:")) {
		return fmt.Errorf("the pod's account: %w", err)
	}
	if c.http == nil || string(ca) != c.ca {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(ca) && strings.HasPrefix(c.url, "https:") {
			return fmt.Errorf("the pod's account: there is no certificate in %s", filepath.Join(c.folder, "ca.crt"))
		}
		c.http = &http.Client{Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool},
			ResponseHeaderTimeout: answersWithin, IdleConnTimeout: 2 * time.Minute,
		}}
	}
	c.token, c.ca, c.read = strings.TrimSpace(string(token)), string(ca), time.Now()
	return nil
}

// Refused is an answer of the server's other than what was asked for.
type Refused struct {
	Status  int
	Message string
	path    string
}

// Error implements error.
func (e *Refused) Error() string {
	what := e.Message
	if what == "" {
		what = http.StatusText(e.Status)
	}
	return fmt.Sprintf("the API server answers %d to %s: %s", e.Status, e.path, what)
}

// mostSaid is how much is read of an answer that is an error.
const mostSaid = 64 << 10

// get asks for a path, whose answer the caller closes.
func (c *Client) get(ctx context.Context, path string) (io.ReadCloser, error) {
	return c.send(ctx, http.MethodGet, path, "", nil)
}

// do sends an object, and decodes the answer into out. A body of nil sends none.
func (c *Client) do(ctx context.Context, method, path, kind string, body, out any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	answer, err := c.send(ctx, method, path, kind, text)
	if err != nil {
		return err
	}
	defer answer.Close()
	if err := json.NewDecoder(io.LimitReader(answer, mostObject)).Decode(out); err != nil {
		return fmt.Errorf("the API server's answer to %s: %w", bare(path), err)
	}
	return nil
}

// bare is a path without its query, as errors name it.
func bare(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}

// send sends a request, whose answer the caller closes.
func (c *Client) send(ctx context.Context, method, path, kind string, body []byte) (io.ReadCloser, error) {
	c.mu.Lock()
	err := c.refresh()
	client, token := c.http, c.token
	c.mu.Unlock()
	if err != nil && client == nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "roundhouse")
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusCreated {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized {
		c.mu.Lock()
		c.read = time.Time{} // the token may just have been renewed
		c.mu.Unlock()
	}
	var said struct {
		Message string `json:"message"`
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, mostSaid)) // what came of it will do
	_ = json.Unmarshal(text, &said)                            // it need not be JSON
	return nil, &Refused{resp.StatusCode, said.Message, bare(path)}
}

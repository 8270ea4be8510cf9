package moby

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"time"

	"github.com/docker/docker/client"
)

// Host says where the Docker engine is, as the variables of Docker's own
// client do.
type Host struct {
	URL       string // DOCKER_HOST; empty: the local socket
	CertPath  string // DOCKER_CERT_PATH: ca.pem, cert.pem, key.pem
	TLSVerify bool   // DOCKER_TLS_VERIFY

	// Auth is what to show the registry of an image, encoded as engines take it;
	// empty: nothing. Nil: nothing is shown to any.
	Auth func(ctx context.Context, image string) (string, error)
}

// Elsewhere is the engine's host where that is another machine; empty: it is this one.
func (h Host) Elsewhere() string {
	u, err := url.Parse(h.URL)
	if err != nil || u.Hostname() == "" || u.Hostname() == "localhost" {
		return "" // a socket, or nothing that Connect takes
	}
	ip := net.ParseIP(u.Hostname())
	if ip != nil && ip.IsLoopback() {
		return ""
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "" // nothing is refused for what is not known
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return ""
		}
	}
	if name, err := os.Hostname(); err == nil && name == u.Hostname() {
		return ""
	}
	return u.Hostname()
}

// Connect makes a client. It does not need the engine to be there yet.
func Connect(host Host) (*client.Client, error) {
	options := []client.Opt{client.WithAPIVersionNegotiation()}
	u, err := url.Parse(host.URL)
	switch {
	case host.URL == "":
	case err != nil:
		return nil, fmt.Errorf("docker host %q: %w", host.URL, err)
	case u.Scheme == "ssh":
		options = append(options, client.WithHTTPClient(&http.Client{Transport: &http.Transport{}}), client.WithHost("http://docker"), client.WithDialContext(dialSSH(u)))
	default:
		options = append(options, client.WithHost(host.URL))
	}
	if host.CertPath != "" && host.TLSVerify {
		options = append(options, client.WithTLSClientConfig(host.CertPath+"/ca.pem", host.CertPath+"/cert.pem", host.CertPath+"/key.pem"))
	}
	return client.NewClientWithOpts(options...)
}

// dialSSH reaches the engine of another host through its docker program.
func dialSSH(u *url.URL) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		args := []string{"-o", "BatchMode=yes"}
		if u.User != nil {
			args = append(args, "-l", u.User.Username())
		}
		if u.Port() != "" {
			args = append(args, "-p", u.Port())
		}
		cmd := exec.Command("ssh", append(args, "--", u.Hostname(), "docker", "system", "dial-stdio")...)
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, fmt.Errorf("ssh %s: %w", u.Hostname(), err)
		}
		return &pipeConn{ReadCloser: out, in: in, cmd: cmd}, nil
	}
}

// pipeConn is a program's standard input and output as a connection. It has
// no deadlines; whoever uses it closes it.
type pipeConn struct {
	io.ReadCloser
	in  io.WriteCloser
	cmd *exec.Cmd
}

func (c *pipeConn) Write(p []byte) (int, error) { return c.in.Write(p) }

// Close ends the program.
func (c *pipeConn) Close() error {
	c.in.Close()
	err := c.ReadCloser.Close()
	_ = c.cmd.Process.Kill() // it has ended already where its input's end was enough
	_ = c.cmd.Wait()
	return err
}

// CloseWrite says that no more is written, as hijacked streams do.
func (c *pipeConn) CloseWrite() error { return c.in.Close() }

func (c *pipeConn) LocalAddr() net.Addr              { return pipeAddr{} }
func (c *pipeConn) RemoteAddr() net.Addr             { return pipeAddr{} }
func (c *pipeConn) SetDeadline(time.Time) error      { return nil }
func (c *pipeConn) SetReadDeadline(time.Time) error  { return nil }
func (c *pipeConn) SetWriteDeadline(time.Time) error { return nil }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "ssh" }
func (pipeAddr) String() string  { return "ssh" }

//go:build clients

package balancer_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"roundhouse/balancer/control"
)

// TestClientsHAProxy puts the door behind HAProxy, in TCP mode, which sends its header in
// either version, and checks the door's health with it.
func TestClientsHAProxy(t *testing.T) {
	r, lines := accessRig(t, func(s *control.WorkerSet) { s.Door.ProxyProtocol = []string{"127.0.0.1"} })
	for id, send := range map[string]string{"one": "send-proxy", "two": "send-proxy-v2", "three": "send-proxy-v2 proxy-v2-options crc32c,unique-id"} {
		front := startHAProxy(t, r.addr, send)
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}).Dial("tcp", front)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, asked("", id, ""))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %v, %v", send, resp, err)
		}
		resp.Body.Close()
	}
	for id, line := range lines(3) {
		if !strings.Contains(line, " client=127.0.0.9 ") {
			t.Errorf("%s: %s", id, line)
		}
	}
}

// startHAProxy runs HAProxy in front of a door and returns its address, once it has found
// the door healthy.
func startHAProxy(t *testing.T, door, send string) string {
	t.Helper()
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front := l.Addr().String()
	l.Close()
	stats := filepath.Join(dir, "stats")
	cfg := fmt.Sprintf("global\n stats socket %s\ndefaults\n mode tcp\n timeout connect 5s\n timeout client 1m\n timeout server 1m\n"+
		"listen door\n bind %s\n option httpchk GET /health\n http-check expect status 200\n server door %s %s check inter 100\n", stats, front, door, send)
	path := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(path, []byte(cfg), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/usr/sbin/haproxy", "-db", "-f", path)
	out := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if t.Failed() {
			t.Log(out)
		}
	})
	(&rig{t: t}).until("HAProxy finds the door healthy", func() bool {
		c, err := net.Dial("unix", stats)
		if err != nil {
			return false
		}
		defer c.Close()
		fmt.Fprint(c, "show stat\n")
		text, err := io.ReadAll(c)
		return err == nil && strings.Contains(string(text), "L7OK")
	})
	return front
}

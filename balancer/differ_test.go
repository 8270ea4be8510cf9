//go:build clients

package balancer_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
)

// odd is one request that a strict server may refuse.
type odd struct{ name, raw string }

// corpus is requests with one or two things wrong, and some with nothing wrong.
func corpus(rng *rand.Rand) (out []odd) {
	const n = len(okBody)
	length := fmt.Sprintf("Content-Length: %d\r\n", n)
	const chunked = "Transfer-Encoding: chunked\r\n"
	whole := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", n, okBody)
	lines := []string{
		"POST /v1/chat/completions HTTP/1.1\r\n", "POST /v1/chat/completions HTTP/1.0\r\n", "POST  /v1/chat/completions HTTP/1.1\r\n",
		"POST /v1/chat/completions HTTP/1.1 \r\n", "POST /v1/chat/completions  HTTP/1.1\r\n", "POST\t/v1/chat/completions HTTP/1.1\r\n",
		"post /v1/chat/completions HTTP/1.1\r\n", "POST /v1/chat/completions HTTP/1.1\n", "POST /v1/chat/completions HTTP/2.0\r\n",
		"POST /v1/chat/completions HTTP/1.10\r\n", "POST /v1/chat/completions\r\n", "POST /v1/chat/completions http/1.1\r\n",
		"\r\nPOST /v1/chat/completions HTTP/1.1\r\n", " POST /v1/chat/completions HTTP/1.1\r\n", "P\x00ST /v1/chat/completions HTTP/1.1\r\n",
		"POST /v1/chat/completions\x00 HTTP/1.1\r\n", "POST http://a/v1/chat/completions HTTP/1.1\r\n", "POST /v1/chat/completions#x HTTP/1.1\r\n",
	}
	hosts := []string{"Host: a\r\n", "", "Host: a\r\nHost: b\r\n", "Host: a/b\r\n", "Host:\r\n", "Host: a b\r\n", "Host : a\r\n", "Host: \x01\r\n", "Host: a@b\r\n"}
	frames := []struct{ head, body string }{
		{length, okBody}, {chunked, whole}, {length + chunked, whole}, {length + length, okBody}, {length + "Content-Length: 1\r\n", okBody},
		{"Content-Length: +5\r\n", okBody}, {"Content-Length: 0x5\r\n", okBody}, {"Content-Length: -1\r\n", okBody}, {"Content-Length: \r\n", okBody},
		{fmt.Sprintf("Content-Length: %d, %d\r\n", n, n), okBody}, {"Content-Length: 99999999999999999999\r\n", okBody}, {fmt.Sprintf("Content-Length: %d\r\n", n+9), okBody},
		{"Transfer-Encoding: xchunked\r\n", whole}, {"Transfer-Encoding: chunked, chunked\r\n", whole}, {"Transfer-Encoding: identity\r\n", whole},
		{"Transfer-Encoding: gzip, chunked\r\n", whole}, {"Transfer-Encoding: \x0bchunked\r\n", whole}, {"Transfer-Encoding:\tchunked\r\n", whole},
		{"Transfer-Encoding : chunked\r\n", whole}, {"Transfer-Encoding\t: chunked\r\n", whole}, {chunked + chunked, whole}, {"Transfer-Encoding: CHUNKED\r\n", whole},
		{chunked, "0x" + whole}, {chunked, " " + whole}, {chunked, strings.Replace(whole, "\r\n", "\n", 1)}, {chunked, strings.Replace(whole, "\r\n", " \r\n", 1)},
		{chunked, strings.Replace(whole, "\r\n", ";a=\"b\r\n", 1)}, {chunked, strings.Replace(whole, "\r\n", ";\x00\r\n", 1)}, {chunked, strings.Replace(whole, "0\r\n\r\n", "0\r\nX y\r\n\r\n", 1)},
		{chunked, strings.Replace(whole, "0\r\n\r\n", "0\r\nContent-Length: 3\r\n\r\n", 1)}, {chunked, strings.Replace(whole, "0\r\n\r\n", "-0\r\n\r\n", 1)},
		{chunked, "ffffffffffffffff0\r\n" + okBody}, {chunked, strings.Replace(whole, okBody+"\r\n", okBody, 1)}, {chunked, strings.Replace(whole, okBody+"\r\n", okBody+"\n", 1)},
		{"", okBody}, {length, okBody + "GET / HTTP/1.1\r\n"},
	}
	extras := []string{
		"", "X: a\r\n", "X : a\r\n", " X: a\r\n", "X: a\r\n b\r\n", "X: a\x00b\r\n", "X: a\rb\r\n", "X: a\nY: b\r\n", "X\r\n", ": a\r\n", "X: \x7f\r\n",
		"X_Y: a\r\n", "X@Y: a\r\n", "X: é\r\n", "Expect: 100-continue\r\n", "Expect: y\r\n", "Upgrade: h2c\r\nHTTP2-Settings: a\r\n", "X: " + strings.Repeat("a", 70000) + "\r\n",
	}
	tail := "Connection: close\r\nContent-Type: application/json\r\n\r\n"
	add := func(name string, line, host, frame, body, extra string) {
		out = append(out, odd{name, line + host + frame + extra + tail + body})
	}
	for i, line := range lines {
		add(fmt.Sprint("line ", i), line, hosts[0], frames[0].head, frames[0].body, "")
	}
	for i, host := range hosts {
		add(fmt.Sprint("host ", i), lines[0], host, frames[0].head, frames[0].body, "")
	}
	for i, f := range frames {
		add(fmt.Sprint("frame ", i), lines[0], hosts[0], f.head, f.body, "")
	}
	for i, x := range extras {
		add(fmt.Sprint("field ", i), lines[0], hosts[0], frames[0].head, frames[0].body, x)
		add(fmt.Sprint("field, chunked ", i), lines[0], hosts[0], frames[1].head, frames[1].body, x)
	}
	for i := range 400 {
		pick := func(n int) int { // mostly the good one, which is the first
			if rng.IntN(4) > 0 {
				return 0
			}
			return rng.IntN(n)
		}
		l, h, f, x := pick(len(lines)), pick(len(hosts)), pick(len(frames)), pick(len(extras))
		raw := []byte(lines[l] + hosts[h] + frames[f].head + extras[x] + tail + frames[f].body)
		name := fmt.Sprintf("random %d: line %d host %d frame %d field %d", i, l, h, f, x)
		if rng.IntN(2) == 0 { // and one byte of the head is another
			at := rng.IntN(min(len(raw), 150))
			raw[at] = "\x00\t\n\r :,;\x0b\x7f\x80a0"[rng.IntN(13)]
			name += fmt.Sprintf(", byte %d", at)
		}
		out = append(out, odd{name, string(raw)})
	}
	return out
}

// takes reports how many requests a server took of what one connection sent.
func takes(t *testing.T, addr, raw string) (taken int) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer c.Close()
	go c.Write([]byte(raw))
	c.SetReadDeadline(time.Now().Add(time.Minute)) // every server ends what stays incomplete within a second
	r := bufio.NewReader(c)
	for {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return taken
		}
		if resp.StatusCode == 100 {
			continue
		}
		// A connection that stays open has its next answer soon or never.
		c.SetReadDeadline(time.Now().Add(2 * time.Second))
		if resp.StatusCode < 400 {
			taken++
		}
		if err := resp.Write(new(strings.Builder)); err != nil {
			return taken
		}
	}
}

// TestClientsDiffer sends odd requests to this door, to Node's HTTP server and
// to nginx: what both of those refuse is never forwarded to a worker, and no
// connection gets more requests through than it does through either of them.
func TestClientsDiffer(t *testing.T) {
	for _, program := range []string{"node", "nginx"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed; make test-prepare installs it")
		}
	}
	node := startNode(t)
	nginx := startNginx(t, node)
	const seed = 20
	all := corpus(rand.New(rand.NewPCG(seed, 1)))
	t.Logf("%d requests, seed %d", len(all), seed)
	var refused, stricter, looser [3]int
	var mu sync.Mutex
	work := make(chan odd)
	var hands sync.WaitGroup
	for range 8 {
		// A door for each hand: what its worker has got is this request's alone.
		w := sim.New(sim.Options{Own: true, Words: 1})
		r := newRig(t, []*sim.Worker{w}, func(s *control.WorkerSet) {
			s.Door.Limits.HeaderRead, s.Door.Limits.BodyIdle = configs.Duration(800*time.Millisecond), configs.Duration(800*time.Millisecond)
		})
		hands.Go(func() {
			for o := range work {
				before := w.Served.Load()
				takes(t, r.addr, o.raw)
				ours, byNode, byNginx := int(w.Served.Load()-before), takes(t, node, o.raw), takes(t, nginx, o.raw)
				if ours > max(byNode, byNginx) {
					t.Errorf("%s: this door forwarded %d requests, node took %d and nginx %d:\n%.300q", o.name, ours, byNode, byNginx, o.raw)
				}
				mu.Lock()
				for i, n := range []int{ours, byNode, byNginx} {
					if n == 0 {
						refused[i]++
					}
					if ours < n {
						stricter[i]++
					}
					if ours > n {
						looser[i]++
						t.Logf("%s: taken here and refused by %s", o.name, []string{"", "node", "nginx"}[i])
					}
				}
				mu.Unlock()
			}
		})
	}
	for _, o := range all {
		work <- o
	}
	close(work)
	hands.Wait()
	t.Logf("refused: this door %d, node %d, nginx %d; this door is stricter than node %d times, than nginx %d, and takes what node refuses %d times, nginx %d",
		refused[0], refused[1], refused[2], stricter[1], stricter[2], looser[1], looser[2])
}

// startNode runs Node's server and returns its address.
func startNode(t *testing.T) string {
	cmd := exec.Command("node", "testdata/differ/server.mjs")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + strings.TrimSpace(port)
}

// startNginx runs nginx in front of a backend and returns its address.
func startNginx(t *testing.T, backend string) string {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	conf, err := os.ReadFile("testdata/differ/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("PORT", addr[strings.LastIndexByte(addr, ':')+1:], "BACKEND", backend[strings.LastIndexByte(backend, ':')+1:]).Replace(string(conf))
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("nginx", "-p", dir, "-c", path, "-e", "stderr")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	(&rig{t: t}).until("nginx answers", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return addr
}

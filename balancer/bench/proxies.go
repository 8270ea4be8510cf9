package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// bench holds the processes that are measured.
type bench struct {
	o       options
	dir     string
	ups     []string
	mu      sync.Mutex // of procs, while engines are killed
	procs   []*exec.Cmd
	proxies []*proxy
}

// proxy is one relay under test.
type proxy struct {
	name string
	addr string
	cmd  *exec.Cmd
}

func newBench(o options) (*bench, error) {
	dir, err := os.MkdirTemp("", "bench-door")
	if err != nil {
		return nil, err
	}
	b := &bench{o: o, dir: dir}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if b.ups, err = b.upstreams(self); err != nil {
		return nil, err
	}
	if b.proxies, err = b.relays("", nil); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// upstreams starts two engines that compute nothing.
func (b *bench) upstreams(self string, kind ...string) (addrs []string, err error) {
	for range 2 {
		addr := freeAddr()
		if _, err := b.start(exec.Command(self, append([]string{"-upstream", addr[strings.IndexByte(addr, ':'):]}, kind...)...)); err != nil {
			return nil, err
		}
		addrs = append(addrs, addr)
	}
	for _, up := range addrs {
		if err := awaitPort(up); err != nil {
			return nil, err
		}
	}
	return addrs, nil
}

// relays starts the door, with the ledger on, and what is installed of the
// others, by TLS where there is a certificate.
func (b *bench) relays(tag string, c *certificate) ([]*proxy, error) {
	p, err := b.door("door"+tag, 2, c)
	if err != nil {
		return nil, err
	}
	p.name = "door"
	all := []*proxy{p}
	for _, o := range []struct {
		name, file string
		args       func(conf string) []string
	}{
		{"nginx", "nginx.conf", func(conf string) []string { return []string{"-p", b.dir, "-c", conf} }},
		{"haproxy", "haproxy.cfg", func(conf string) []string { return []string{"-q", "-f", conf} }},
	} {
		path, err := exec.LookPath(o.name)
		if err != nil {
			continue
		}
		if p, err = b.other(o.name, o.file, tag, c, func(conf string) *exec.Cmd { return exec.Command(path, o.args(conf)...) }); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (b *bench) names() (names []string) {
	for _, p := range b.proxies {
		names = append(names, p.name)
	}
	return names
}

func (b *bench) start(cmd *exec.Cmd) (*exec.Cmd, error) {
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b.procs = append(b.procs, cmd)
	return cmd, nil
}

func (b *bench) stop() {
	end(b.procs)
	os.RemoveAll(b.dir)
}

// end ends processes, those by force that take more than two seconds.
func end(procs []*exec.Cmd) {
	for _, p := range procs {
		p.Process.Signal(os.Interrupt)
	}
	for _, p := range procs {
		done := make(chan struct{})
		go func() { p.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(2 * time.Second):
			p.Process.Kill()
			<-done
		}
	}
}

// door starts a door in front of so many workers, which are the two upstreams
// under several names. Its log goes to a file, as nginx's does.
func (b *bench) door(name string, workers int, c *certificate) (*proxy, error) {
	addr := freeAddr()
	var conf strings.Builder
	fmt.Fprintf(&conf, "admin {\n  listen = %q\n}\n", freeAddr())
	secure := ""
	if c != nil {
		secure = fmt.Sprintf("  tls {\n    cert = %q\n    key = %q\n  }\n", c.Cert, c.Key)
	}
	fmt.Fprintf(&conf, "door {\n  listen = %q\n%s}\npool \"p\" {\n  driver = \"static\"\n", addr, secure)
	for i := range workers {
		// One upstream stands for many workers under the loopback's many addresses.
		port := b.ups[i%2][strings.IndexByte(b.ups[i%2], ':'):]
		fmt.Fprintf(&conf, "  worker \"w%d\" {\n    url = \"http://127.0.0.%d%s\"\n  }\n", i, i/2+1, port)
	}
	conf.WriteString("}\n")
	path := filepath.Join(b.dir, name+".hcl")
	err := os.WriteFile(path, []byte(conf.String()), 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(b.o.door, "balance", "-c", path)
	if cmd.Stderr, err = os.Create(filepath.Join(b.dir, name+".log")); err != nil {
		return nil, err
	}
	if _, err = b.start(cmd); err != nil {
		return nil, err
	}
	if err := awaitServing(addr, c); err != nil {
		return nil, fmt.Errorf("the door does not serve: %w", err)
	}
	return &proxy{name, addr, cmd}, nil
}

// other starts a relay that is not ours, by its committed configuration.
func (b *bench) other(name, file, tag string, c *certificate, command func(conf string) *exec.Cmd) (*proxy, error) {
	raw, err := os.ReadFile(filepath.Join(b.o.configs, file))
	if err != nil {
		return nil, err
	}
	addr := freeAddr()
	streams, err := mostStreams()
	if err != nil {
		return nil, err
	}
	secureNginx, secureHAProxy := "", ""
	if c != nil {
		secureNginx = "ssl; ssl_certificate " + c.Cert + "; ssl_certificate_key " + c.Key
		secureHAProxy = "ssl crt " + c.both
	}
	conf := strings.NewReplacer("STREAMS", strconv.Itoa(streams), "LISTEN", addr, "UPSTREAM1", b.ups[0], "UPSTREAM2", b.ups[1], "SSLNGINX", secureNginx, "SSLHAPROXY", secureHAProxy,
		"PID", filepath.Join(b.dir, name+tag+".pid"), "TMP", b.dir).Replace(string(raw))
	path := filepath.Join(b.dir, tag+file)
	if err = os.WriteFile(path, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	cmd, err := b.start(command(path))
	if err != nil {
		return nil, err
	}
	if err := awaitServing(addr, c); err != nil {
		return nil, fmt.Errorf("%s does not serve: %w", name, err)
	}
	return &proxy{name, addr, cmd}, nil
}

func freeAddr() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func awaitPort(addr string) error {
	for range 100 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("nothing listens at %s", addr)
}

// awaitServing waits until a chat request is answered.
func awaitServing(addr string, cert *certificate) error {
	if err := awaitPort(addr); err != nil {
		return err
	}
	req := request(false, "x", 100)
	var last error
	for range 100 {
		c, err := dialBy(cert.dial, addr)
		if err != nil {
			return err
		}
		_, last = c.do(req)
		c.c.Close()
		if last == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return last
}

// family lists a process and its children.
func family(pid int) []int {
	all := []int{pid}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err == nil {
		for _, f := range strings.Fields(string(raw)) {
			if child, err := strconv.Atoi(f); err == nil {
				all = append(all, family(child)...)
			}
		}
	}
	return all
}

// cpu is the seconds of processor that a proxy has used, to the microsecond:
// what /proc says of it is cut to hundredths.
func (p *proxy) cpu() (seconds float64) {
	for _, pid := range family(p.cmd.Process.Pid) {
		var at unix.Timespec
		if unix.ClockGettime(int32(^pid<<3|2), &at) == nil { // the clock of a process
			seconds += float64(at.Nano()) / 1e9
		}
	}
	return seconds
}

// resident is the bytes of memory that only this proxy holds.
func (p *proxy) resident() (bytes float64) {
	for _, pid := range family(p.cmd.Process.Pid) {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			if v, ok := strings.CutPrefix(line, "RssAnon:"); ok {
				kb, _ := strconv.ParseFloat(strings.Fields(v)[0], 64)
				bytes += kb * 1024
			}
		}
	}
	return bytes
}

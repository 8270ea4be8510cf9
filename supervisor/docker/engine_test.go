package docker

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/docker/go-connections/nat"
	"golang.org/x/sys/unix"

	"roundhouse/configs"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/driver/drivertest"
	"roundhouse/supervisor/moby"
	"roundhouse/test/leaks"
)

// lab is a Docker engine to test with: the one that answers on this machine,
// or one of the tests' own, which a test may restart.
type lab struct {
	host   moby.Host
	secure moby.Host // the same over TCP with certificates, where the engine is the tests' own
	client *client.Client
	daemon *exec.Cmd // nil: not ours to restart
	dir    string
	more   []string // flags of the tests' own engine
	net    []string // that have it use a bridge of its own
	bridge func()   // removes that bridge
	port   func()   // gives the port of secure back
	built  bool     // testImage is there
}

var shared *lab

// rootless has all tests run against an engine of an ordinary user's.
var rootless = flag.Bool("rootless", false, "against a Docker engine of the user nobody's (rootlesskit, slirp4netns, uidmap; as root)")

// For machines that have an engine of their own making, and no Go.
var (
	engineURL = flag.String("engine", "", "against the Docker engine that answers here")
	programs  = flag.String("programs", "", "a folder with roundhouse and worker, which is testdata/worker, instead of building them")
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if shared != nil {
		shared.close()
	}
	built.Remove()
	http.DefaultClient.CloseIdleConnections()
	os.Exit(leaks.Check(code))
}

// engineFor returns the lab, and skips where this machine can have none.
func engineFor(t *testing.T) *lab {
	t.Helper()
	if shared != nil {
		return shared
	}
	l := &lab{host: moby.Host{URL: *engineURL}}
	if (!*rootless || *engineURL != "") && l.answers() {
		shared = l
	} else {
		if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
			t.Skip("no Docker engine answers, and there is none to start (dockerd, as root; package docker.io)")
		}
		dir, err := os.MkdirTemp("", "rh-docker-")
		if err == nil {
			err = os.Chmod(dir, 0o755) // what lies there is for its owner alone
		}
		if err != nil {
			t.Fatal(err)
		}
		l.dir, l.host = dir, moby.Host{URL: "unix://" + dir + "/docker.sock"}
		if !*rootless { // whose network is its own
			l.net, l.bridge = drivertest.Bridge(t)
		}
		shared = l
		l.start(t)
	}
	l.build(t)
	return l
}

func (l *lab) answers() bool {
	e, err := moby.Connect(l.host)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err = e.Ping(ctx); err != nil {
		e.Close()
		return false
	}
	if l.client != nil {
		l.client.Close()
	}
	l.client = e
	return true
}

// start starts the tests' own engine and waits until it answers.
func (l *lab) start(t *testing.T) {
	t.Helper()
	l.certificates(t)
	l.daemon = drivertest.Boot(t, l.dir+"/log", func() *exec.Cmd {
		cmd := l.program(t, "--data-root", l.dir+"/data", "--exec-root", l.dir+"/exec", "--pidfile", l.dir+"/pid", "-H", l.host.URL,
			"-H", l.secure.URL, "--tlsverify", "--tlscacert", l.dir+"/ca.pem", "--tlscert", l.dir+"/server.pem", "--tlskey", l.dir+"/server-key.pem")
		cmd.Args = append(append(cmd.Args, l.net...), l.more...)
		return cmd
	}, l.answers)
}

// program is dockerd, or what starts an ordinary user's.
func (l *lab) program(t *testing.T, flags ...string) *exec.Cmd {
	t.Helper()
	if !*rootless {
		return exec.Command("dockerd", flags...)
	}
	script := "/usr/share/docker.io/contrib/dockerd-rootless.sh" // Debian's
	if path, err := exec.LookPath("dockerd-rootless.sh"); err == nil {
		script = path
	}
	for _, need := range []string{script, "rootlesskit", "slirp4netns", "newuidmap"} {
		if _, err := exec.LookPath(need); err != nil {
			t.Skipf("no rootless engine can be started here: %v (Debian: rootlesskit, slirp4netns, uidmap)", err)
		}
	}
	cmd := exec.Command("unshare", append([]string{"--mount", "testdata/rootless", l.dir, script}, flags...)...)
	_, at, _ := strings.Cut(l.secure.URL, "//127.0.0.1:")
	cmd.Env = append(os.Environ(), "PUBLISH=-p 127.0.0.1:"+at+":"+at+"/tcp")
	return cmd
}

// user is who has the engine that the tests have with -rootless: nobody, or the owner of
// the socket that they were given.
func user(t *testing.T) uint32 {
	t.Helper()
	if *engineURL == "" {
		return 65534
	}
	info, err := os.Stat(strings.TrimPrefix(*engineURL, "unix://"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

// open gives a test's folder to the engine's user, where that is an ordinary one.
func open(t *testing.T, dir string) {
	t.Helper()
	if !*rootless {
		return
	}
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chown(dir, int(user(t)), int(user(t)))); err != nil {
		t.Fatal(err)
	}
}

// hostNetwork is the network mode of those tests' workers whose network is the host's: a
// rootless engine has none that is.
func hostNetwork() string {
	if *rootless {
		return ""
	}
	return "host"
}

func (l *lab) stop() {
	_ = l.daemon.Process.Signal(os.Interrupt)
	_ = l.daemon.Wait()
}

// kill ends the engine outright, and what it says of its containerd, which ends with
// it, and of itself, where it is a child of another: where nobody reaps those, the next
// engine takes them for alive.
func (l *lab) kill() {
	_ = l.daemon.Process.Kill()
	_ = l.daemon.Wait()
	os.Remove(l.dir + "/exec/containerd/containerd.pid")
	os.Remove(l.dir + "/pid")
}

func (l *lab) close() {
	if l.daemon == nil && l.built { // the engine is somebody's, and stays as it was
		if _, err := l.client.ImageRemove(context.Background(), testImage, image.RemoveOptions{Force: true}); err != nil {
			fmt.Fprintln(os.Stderr, "the tests' image is left:", err)
		}
	}
	l.client.Close()
	if l.daemon == nil {
		return
	}
	l.stop()
	if l.port != nil {
		l.port()
	}
	// dockerd leaves its network's namespace mounted, and all of it where it was killed.
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], l.dir+"/") {
			_ = unix.Unmount(fields[1], unix.MNT_DETACH)
		}
	}
	if l.bridge != nil {
		l.bridge()
	}
	os.RemoveAll(l.dir)
}

// testImage is these tests' own: another run of them may use the same engine.
var testImage = fmt.Sprintf("roundhouse-test-worker:%d", os.Getpid())

// layer builds the test worker, and returns it as the one layer of an image. No engine
// has met it, or it would ask nobody for it.
func layer(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(*programs, "worker")
	if *programs == "" {
		path = filepath.Join(t.TempDir(), "worker")
		cmd := exec.Command("go", "build", "-o", path, "./testdata/worker")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return drivertest.Layer(t, "worker", fmt.Appendf(program, "%x", rand.Text()))
}

// build makes the tests' image.
func (l *lab) build(t *testing.T) {
	t.Helper()
	if l.built {
		return
	}
	l.built = true
	l.importWorker(t, testImage, "")
}

// importWorker makes an image of nothing but the test worker, whose label tells it from
// others.
func (l *lab) importWorker(t *testing.T, name, label string) {
	t.Helper()
	r, err := l.client.ImageImport(t.Context(), image.ImportSource{Source: bytes.NewReader(layer(t)), SourceName: "-"}, name,
		image.ImportOptions{Changes: []string{`ENTRYPOINT ["/worker"]`, `LABEL of="` + label + `"`}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if out, err := io.ReadAll(r); err != nil || bytes.Contains(out, []byte(`"error"`)) {
		t.Fatal(err, string(out))
	}
}

// driverFor returns a driver of an instance of the test's own, whose containers
// go with the test.
func driverFor(t *testing.T) (*lab, *Driver) {
	t.Helper()
	l := engineFor(t)
	instance := strings.ToLower(t.Name())
	d, err := New(l.host, instance, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		list, err := d.ours(context.Background(), "")
		if err != nil {
			t.Error(err)
		}
		for _, c := range list {
			if err := l.client.ContainerRemove(context.Background(), c.ID, container.RemoveOptions{Force: true}); err != nil {
				t.Error(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, d
}

func specFor(name string, generation uint64) driver.Spec {
	return driver.Spec{
		Pool: "pool", Name: name, Generation: generation, Hash: "h", Grace: 5 * time.Second,
		Engine:    configs.Engine{ServedModelName: []string{"fake"}},
		Container: configs.Container{Image: testImage, PullPolicy: "never", ShmSize: 64 << 20, Ulimits: map[string]int64{"nofile": 4096}, Environment: map[string]string{"A": "b"}},
	}
}

func healthy(url string) bool {
	res, err := http.Get(url + "/health")
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// stranger starts a container that is not ours.
func (l *lab) stranger(t *testing.T, name string, host bool, args ...string) string {
	t.Helper()
	h := &container.HostConfig{RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyAlways}}
	c := &container.Config{Image: testImage, Cmd: args}
	if host {
		h.NetworkMode = container.NetworkMode(hostNetwork())
	}
	if host && *rootless { // it is reached where it would be
		port := nat.Port(args[len(args)-1] + "/tcp")
		c.ExposedPorts = nat.PortSet{port: {}}
		h.PortBindings = nat.PortMap{port: {{HostIP: "127.0.0.1", HostPort: port.Port()}}}
	}
	made, err := l.client.ContainerCreate(t.Context(), c, h, nil, nil, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.client.ContainerRemove(context.Background(), made.ID, container.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	if err := l.client.ContainerStart(t.Context(), made.ID, container.StartOptions{}); err != nil {
		t.Fatal(fmt.Errorf("the stranger: %w", err))
	}
	return made.ID
}

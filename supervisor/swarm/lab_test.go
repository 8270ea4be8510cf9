//go:build docker

package swarm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"
	"golang.org/x/sys/unix"

	"roundhouse/configs"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/driver/drivertest"
	"roundhouse/supervisor/moby"
)

// node is a Docker engine of the tests' own in a network namespace of its own, so
// that nothing here meets another Swarm's ports. No process ends but these.
type node struct {
	name    string // of the namespace
	address string
	dir     string
	host    moby.Host
	client  *client.Client
	daemon  *exec.Cmd
	joined  bool // the manager's Swarm
}

// nodes are those of the one Swarm of the tests: a manager, and where a test asks for
// it a worker.
var nodes struct {
	manager, worker *node
}

// init has TestMain end them.
func init() {
	atEnd = func() {
		for _, n := range []*node{nodes.worker, nodes.manager} {
			if n != nil {
				n.close()
			}
		}
		if built.dir != "" {
			os.RemoveAll(built.dir)
		}
	}
}

// sh runs a program that must succeed.
func sh(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// managerFor returns the manager, and skips where this machine can have none.
func managerFor(t *testing.T) *node {
	t.Helper()
	if nodes.manager != nil {
		return nodes.manager
	}
	for _, program := range []string{"dockerd", "ip", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil || os.Geteuid() != 0 {
			t.Skipf("a Swarm of the tests' own takes root and %s (packages docker.io, iproute2, util-linux)", program)
		}
	}
	pid := os.Getpid()
	a, b := &node{name: fmt.Sprintf("rhswarm%da", pid), address: "10.97.0.1"}, &node{name: fmt.Sprintf("rhswarm%db", pid), address: "10.97.0.2"}
	nodes.manager, nodes.worker = a, b
	for _, n := range []*node{a, b} {
		sh(t, "ip", "netns", "add", n.name)
		sh(t, "ip", "-n", n.name, "link", "set", "lo", "up")
	}
	sh(t, "ip", "link", "add", "rh0", "netns", a.name, "type", "veth", "peer", "name", "rh0", "netns", b.name)
	for _, n := range []*node{a, b} {
		sh(t, "ip", "-n", n.name, "addr", "add", n.address+"/24", "dev", "rh0")
		sh(t, "ip", "-n", n.name, "link", "set", "rh0", "up")
	}
	a.start(t)
	a.build(t)
	begin := swarm.InitRequest{ListenAddr: a.address + ":2377", AdvertiseAddr: a.address}
	if _, err := a.client.SwarmInit(t.Context(), begin); err != nil {
		t.Fatal(err)
	}
	ready(t, 1)
	return a
}

// workerFor joins the second node to the Swarm.
func workerFor(t *testing.T) (a, b *node) {
	t.Helper()
	a = managerFor(t)
	b = nodes.worker
	if b.joined {
		return a, b
	}
	if b.daemon == nil {
		b.start(t)
	}
	a.carry(t, b, testImage)
	info, err := a.client.SwarmInspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.client.SwarmJoin(t.Context(), swarm.JoinRequest{ListenAddr: b.address + ":2377", AdvertiseAddr: b.address, RemoteAddrs: []string{a.address + ":2377"}, JoinToken: info.JoinTokens.Worker}); err != nil {
		t.Fatal(err)
	}
	b.joined = true
	ready(t, 2)
	return a, b
}

// ready waits until the Swarm has as many nodes that are.
func ready(t *testing.T, nodesReady int) {
	t.Helper()
	drivertest.Until(t, "nodes are ready", func() bool {
		list, err := nodes.manager.client.NodeList(t.Context(), swarm.NodeListOptions{})
		n := 0
		for _, node := range list {
			if node.Status.State == swarm.NodeStateReady {
				n++
			}
		}
		return err == nil && n == nodesReady
	})
}

// carry brings an image from one node to another, as docker save and load do.
func (n *node) carry(t *testing.T, to *node, name string) {
	t.Helper()
	saved, err := n.client.ImageSave(t.Context(), []string{name})
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	loaded, err := to.client.ImageLoad(t.Context(), saved)
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Body.Close()
	if out, err := io.ReadAll(loaded.Body); err != nil || bytes.Contains(out, []byte(`"error"`)) {
		t.Fatal(err, string(out))
	}
}

// available drains a node by Swarm's own hand, or has it take tasks again.
func (n *node) available(t *testing.T, how swarm.NodeAvailability) {
	t.Helper()
	drivertest.Until(t, "the node is made "+string(how), func() bool {
		list, err := nodes.manager.client.NodeList(t.Context(), swarm.NodeListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(m swarm.Node) bool { return m.Status.Addr == n.address })
		if i < 0 {
			t.Fatalf("no node has the address %s: %+v", n.address, list)
		}
		list[i].Spec.Availability = how
		err = nodes.manager.client.NodeUpdate(t.Context(), list[i].ID, list[i].Version, list[i].Spec)
		if err != nil && !outOfSequence(err) {
			t.Fatal(err)
		}
		return err == nil // else Swarm itself has changed the node meanwhile
	})
}

// die takes a node away as a cut of its power does: its network is gone before any
// process of it could say a word.
func (n *node) die(t *testing.T) {
	t.Helper()
	var pids []int
	list, err := n.client.ContainerList(t.Context(), container.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		full, err := n.client.ContainerInspect(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, full.State.Pid)
	}
	sh(t, "ip", "-n", n.name, "link", "set", "rh0", "down")
	_ = n.daemon.Process.Kill()
	_ = n.daemon.Wait()
	for pid := range strings.FieldsSeq(sh(t, "ip", "netns", "pids", n.name)) { // its containerd, and what stands before each container
		p, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, p)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	n.daemon = nil
}

// start starts a node's engine and waits until it answers.
func (n *node) start(t *testing.T) {
	t.Helper()
	if n.dir == "" {
		dir, err := os.MkdirTemp("", "rh-swarm-")
		if err != nil {
			t.Fatal(err)
		}
		n.dir, n.host = dir, moby.Host{URL: "unix://" + dir + "/sock"}
		if n.client, err = moby.Connect(n.host); err != nil {
			t.Fatal(err)
		}
	}
	n.daemon = drivertest.Boot(t, n.dir+"/log", func() *exec.Cmd {
		return n.command("dockerd", "--data-root", n.dir+"/data", "--exec-root", n.dir+"/exec", "--pidfile", n.dir+"/pid", "-H", n.host.URL, "--node-generic-resource", "SLOT=4")
	}, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := n.client.Ping(ctx)
		return err == nil
	})
}

// command is a program in the node's network.
func (n *node) command(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--net=/run/netns/" + n.name, "--"}, args...)...)
}

// close ends a node with all that it started.
func (n *node) close() {
	if n.daemon != nil {
		_ = n.daemon.Process.Signal(syscall.SIGTERM)
		_ = n.daemon.Wait()
	}
	if n.client != nil {
		n.client.Close()
	}
	if n.dir != "" {
		mounts, _ := os.ReadFile("/proc/self/mounts")
		for line := range strings.Lines(string(mounts)) {
			if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], n.dir+"/") {
				_ = unix.Unmount(fields[1], unix.MNT_DETACH)
			}
		}
		os.RemoveAll(n.dir)
	}
	_ = exec.Command("ip", "netns", "del", n.name).Run()
}

// within does something in a network namespace, in this goroutine's own thread.
func within(namespace string, do func() error) error {
	runtime.LockOSThread()
	back, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer back.Close()
	there, err := os.Open(namespace)
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err = do()
	if unix.Setns(int(back.Fd()), unix.CLONE_NEWNET) == nil {
		runtime.UnlockOSThread() // else the thread ends with this goroutine
	}
	return err
}

// dial connects from within a network namespace, to an address as it is.
func dial(ctx context.Context, namespace, network, address string) (c net.Conn, err error) {
	err = within(namespace, func() (err error) {
		var d net.Dialer
		c, err = d.DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// httpIn is a client within a network namespace. It keeps no connection.
func httpIn(namespace string) *http.Client {
	return &http.Client{Timeout: drivertest.Patience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dial(ctx, namespace, network, address)
		}}}
}

// http is one within the node's network.
func (n *node) http() *http.Client { return httpIn("/run/netns/" + n.name) }

func (n *node) healthy(url string) bool {
	res, err := n.http().Get(url + "/health")
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

const testImage = "roundhouse-test-worker:1"

// build makes an image of nothing but the test worker of package docker.
func (n *node) build(t *testing.T) {
	t.Helper()
	n.importImage(t, testImage, "worker", testWorker(t), `ENTRYPOINT ["/worker"]`)
}

// testWorker builds it.
func testWorker(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "worker")
	cmd := exec.Command("go", "build", "-o", path, "../docker/testdata/worker")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// driverFor returns a driver of an instance of the test's own, whose services go with
// the test.
func driverFor(t *testing.T) (*node, *Driver) {
	t.Helper()
	n := managerFor(t)
	d, err := New(n.host, strings.ToLower(t.Name()), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		list, err := d.ours(context.Background(), "")
		if err != nil {
			t.Error(err)
		}
		for _, s := range list {
			if err := d.remove(context.Background(), s); err != nil {
				t.Error(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return n, d
}

// startAtLast starts a worker as a supervisor does: it tries again where the engine was
// too busy to pull an image, or to end an old task, in its time.
func startAtLast(t *testing.T, d *Driver, spec driver.Spec) {
	t.Helper()
	drivertest.Until(t, "a start", func() bool {
		err := d.Start(t.Context(), spec)
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
}

func specFor(name string, generation uint64) driver.Spec {
	return driver.Spec{
		Pool: "pool", Name: name, Generation: generation, Hash: "h", Grace: time.Minute,
		Engine: configs.Engine{ServedModelName: []string{"fake"}},
		Container: configs.Container{Image: testImage, PullPolicy: "never", ShmSize: 64 << 20, Ulimits: map[string]int64{"nofile": 4096},
			Environment: map[string]string{"A": "b"}, GenericResources: map[string]int64{"SLOT": 1}},
	}
}

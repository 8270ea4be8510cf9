package docker

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"

	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/driver/drivertest"
	"roundhouse/supervisor/moby"
)

// farLab is a Docker engine in a network of its own, which is reached there alone, as
// one on another machine is.
func farLab(t *testing.T) (l *lab, address string) {
	t.Helper()
	if *rootless || *engineURL != "" || os.Geteuid() != 0 {
		t.Skip("an engine in a network of its own takes root and an engine of the tests' own")
	}
	for _, need := range []string{"dockerd", "ip", "nsenter"} {
		if _, err := exec.LookPath(need); err != nil {
			t.Skipf("no far engine can be started here: %v (Debian: docker.io, iproute2, util-linux)", err)
		}
	}
	id := os.Getpid() % 50000
	name, here, there := fmt.Sprint("rhfar", id), fmt.Sprint("rhh", id), fmt.Sprint("rht", id)
	near := fmt.Sprintf("10.%d.%d.1", 200+id/250%50, id%250)
	address = strings.TrimSuffix(near, "1") + "2"
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v %s", args, err, out)
		}
	}
	ip("netns", "add", name)
	t.Cleanup(func() { ip("netns", "delete", name) })
	ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
	ip("address", "add", near+"/30", "dev", here)
	ip("link", "set", here, "up")
	ip("-n", name, "address", "add", address+"/30", "dev", there)
	ip("-n", name, "link", "set", there, "up")
	ip("-n", name, "link", "set", "lo", "up")

	dir, err := os.MkdirTemp("", "rh-far-")
	if err != nil {
		t.Fatal(err)
	}
	l = &lab{dir: dir, host: moby.Host{URL: "tcp://" + address + ":2375"}}
	t.Cleanup(func() {
		if l.daemon == nil { // it did not come up
			os.RemoveAll(dir)
			return
		}
		l.close()
	})
	l.daemon = drivertest.Boot(t, dir+"/log", func() *exec.Cmd {
		return exec.Command("nsenter", "--net=/run/netns/"+name, "dockerd", "--data-root", dir+"/data", "--exec-root", dir+"/exec", "--pidfile", dir+"/pid", "-H", l.host.URL, "--tls=false")
	}, l.answers)
	l.build(t)
	return l, address
}

// far starts a container there that is to be taken over.
func (l *lab) far(t *testing.T, name, network string, ports nat.PortMap, args ...string) {
	t.Helper()
	c := &container.Config{Image: testImage, Cmd: args, ExposedPorts: nat.PortSet{}}
	for port := range ports {
		c.ExposedPorts[port] = struct{}{}
	}
	made, err := l.client.ContainerCreate(t.Context(), c, &container.HostConfig{NetworkMode: container.NetworkMode(network), PortBindings: ports}, nil, nil, name)
	if err == nil {
		err = l.client.ContainerStart(t.Context(), made.ID, container.StartOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The Docker engine of another machine: what it runs is reached at that machine, by one
// of several ports and always the same; what is published on its loopback is an error,
// since this machine's port of that number is somebody else; and a worker that no door
// could reach, or that wants GPUs, is refused before anything is drained or made.
func TestFarEngine(t *testing.T) {
	l, address := farLab(t)
	d, err := New(l.host, "far", false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	spec := specFor("1", 1)
	for _, gpus := range [][]driver.GPU{nil, {{ID: "0000:03:00.0", Vendor: "intel", Render: "/dev/dri/renderD128"}}} {
		spec.Place.GPUs = gpus
		for _, err := range []error{d.Prepare(t.Context(), spec), d.Start(t.Context(), spec)} {
			if err == nil || !strings.Contains(err.Error(), address) {
				t.Errorf("a worker with the GPUs %v: %v", gpus, err)
			}
		}
	}
	if list, err := l.client.ContainerList(t.Context(), container.ListOptions{All: true}); err != nil || len(list) > 0 {
		t.Errorf("%v; there are %+v", err, list)
	}

	l.far(t, "bridged", "bridge", nat.PortMap{"8000/tcp": {{HostPort: "18000"}}, "9000/tcp": {{HostPort: "17000"}}}, "--port", "8000")
	l.far(t, "hosts", "host", nil, "--port", "19000")
	expect := func(name string, port int) driver.Spec {
		s := specFor(name, 1)
		s.Takeover, s.Port = name, port
		return s
	}
	d.Expect([]driver.Spec{expect("bridged", 0), expect("hosts", 19000)})
	for range 10 {
		list, err := d.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range list {
			want := map[string]string{"pool/bridged": "http://" + address + ":18000", "pool/hosts": "http://" + address + ":19000"}[i.ID]
			if i.URL != want {
				t.Errorf("%s is at %q, want %q", i.ID, i.URL, want)
			}
			drivertest.Until(t, i.ID+" answers", func() bool { return healthy(i.URL) })
		}
		if len(list) != 2 {
			t.Fatalf("found %+v", list)
		}
	}

	l.far(t, "hidden", "bridge", nat.PortMap{"8000/tcp": {{HostIP: "127.0.0.1", HostPort: strconv.Itoa(18001)}}}, "--port", "8000")
	d.Expect([]driver.Spec{expect("hidden", 8000)})
	if list, err := d.List(t.Context()); err == nil || !strings.Contains(err.Error(), "hidden") {
		t.Errorf("one on the loopback there: %+v, %v", list, err)
	}
}

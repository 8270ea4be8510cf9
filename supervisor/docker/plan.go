package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"

	"roundhouse/configs"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/moby"
	"roundhouse/worker/device"
)

// plan is what a container is made of.
type plan struct {
	config  *container.Config
	host    *container.HostConfig
	network *network.NetworkingConfig
}

// plan turns a Spec into a container.
func (d *Driver) plan(ctx context.Context, spec driver.Spec) (plan, error) {
	c := spec.Container
	grace := int(spec.Grace.Seconds())
	p := plan{
		config: &container.Config{Image: cmp.Or(spec.Image, c.Image), Entrypoint: c.Entrypoint, Env: moby.Environment(spec), User: c.User, Labels: moby.Labels(spec, d.instance), StopTimeout: &grace},
		host: &container.HostConfig{
			Binds: c.Volumes, ShmSize: int64(c.ShmSize), IpcMode: container.IpcMode(c.IPC), NetworkMode: container.NetworkMode(c.NetworkMode),
			RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled}, // who restarts is one, and that is us
			LogConfig:     container.LogConfig{Type: moby.LogDriver, Config: moby.LogOptions()},
		},
	}
	p.config.Labels[moby.LabelImage] = c.Image
	p.config.Labels[moby.LabelURL] = "" // or an image's own label of that name would say where the door sends requests
	if c.Init {
		p.host.Init = &c.Init
	}
	if p.host.NetworkMode.IsHost() { // an image's own check asks the port that it expects, which may be a neighbour's
		p.config.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
	}
	p.host.Ulimits = moby.Ulimits(spec)
	confine(p.host, c)
	powers := d.can()
	if powers.Rootless && p.host.NetworkMode.IsHost() {
		return plan{}, errors.New("network_mode = \"host\": under a rootless engine that is a network of the engine's own, which the door is not on; leave network_mode out, and the port is published on the loopback")
	}
	if !powers.Measures && (c.Memory > 0 || c.PidsLimit > 0) { // it would start, unbounded
		return plan{}, errors.New("memory and pids_limit: the Docker engine has no control groups to hold a container to them; `roundhouse doctor` says how it gets them")
	}
	far := d.host.Elsewhere()
	if far != "" && slices.ContainsFunc(spec.Place.GPUs, func(g driver.GPU) bool { return g.Vendor != "nvidia" }) {
		return plan{}, fmt.Errorf("the Docker engine is at %s, whose GPUs are not seen from here: this machine's would be asked for; set devices = \"cpu\", or run roundhouse on that machine", far)
	}
	if powers.Confines && far == "" { // another would say that it had, and would not
		p.host.CpusetCpus, p.host.CpusetMems = spec.Place.CPUs, device.FormatList(spec.Place.NUMA)
	}
	if err := devices(p.host, d.nodes, spec.Place.GPUs); err != nil {
		return plan{}, err
	}
	if powers.Rootless {
		p.host.GroupAdd = nil // inside, the numbers are those of other groups
	}
	port, err := d.connect(ctx, &p, spec)
	if err != nil {
		return plan{}, err
	}
	p.config.Cmd = c.Command
	if c.Command == nil {
		p.config.Cmd = moby.Arguments(spec, p.host.NetworkMode.IsHost(), port)
	}
	return p, nil
}

// confine gives a container what the pool lets through to it, and its limits.
func confine(h *container.HostConfig, c configs.Container) {
	h.CapAdd, h.SecurityOpt, h.ExtraHosts = moby.Capabilities(c), c.SecurityOpt, c.ExtraHosts
	for _, node := range c.DevicesExtra {
		h.Devices = append(h.Devices, container.DeviceMapping{PathOnHost: node, PathInContainer: node, CgroupPermissions: "rw"})
	}
	if c.PidsLimit > 0 {
		h.PidsLimit = &c.PidsLimit
	}
	if c.Memory > 0 { // no swap beside it: an engine that swaps answers nobody
		h.Memory, h.MemorySwap = int64(c.Memory), int64(c.Memory)
	}
}

// connect decides how the door reaches the container, and returns the port
// that the server inside listens on.
func (d *Driver) connect(ctx context.Context, p *plan, spec driver.Spec) (int, error) {
	port := spec.Port
	if far := d.host.Elsewhere(); far != "" && !(d.inside && len(spec.Container.Networks) > 0) {
		return 0, fmt.Errorf("the Docker engine is at %s, and a worker's port there is on that machine's own loopback, which no door reaches from here: run roundhouse on that machine, or a Swarm (driver = \"swarm\") over both", far)
	}
	if p.host.NetworkMode.IsHost() {
		if port == 0 {
			var lc net.ListenConfig
			l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
			if err != nil {
				return 0, fmt.Errorf("no free port on the loopback: %w", err)
			}
			port = l.Addr().(*net.TCPAddr).Port
			l.Close()
		}
		p.config.Labels[moby.LabelURL] = "http://127.0.0.1:" + strconv.Itoa(port)
		return port, nil
	}
	if port == 0 {
		port = moby.DefaultPort
	}
	if nets := spec.Container.Networks; len(nets) > 0 {
		p.host.NetworkMode = container.NetworkMode(nets[0])
		p.network = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{}}
		for _, n := range nets {
			p.network.EndpointsConfig[n] = &network.EndpointSettings{}
		}
		if d.inside {
			p.config.Labels[moby.LabelURL] = "http://" + moby.Name(spec) + ":" + strconv.Itoa(port)
			return port, nil
		}
	}
	inner := nat.Port(strconv.Itoa(port) + "/tcp")
	published := nat.PortBinding{HostIP: "127.0.0.1"} // the engine picks a free one
	if spec.Port != 0 {
		published.HostPort = strconv.Itoa(spec.Port)
	}
	p.config.ExposedPorts = nat.PortSet{inner: {}}
	p.host.PortBindings = nat.PortMap{inner: {published}}
	return port, nil
}

// devices gives a container its GPUs and no other: an Intel one's render node
// and card with their by-path names and the groups that may use them, an
// NVIDIA one by its UUID.
func devices(h *container.HostConfig, nodes string, gpus []driver.GPU) error {
	var nvidia []string
	for _, g := range gpus {
		if g.Vendor == "nvidia" {
			nvidia = append(nvidia, g.ID)
			continue
		}
		for _, node := range []string{g.Render, g.Card} {
			if node == "" {
				continue
			}
			info, err := os.Stat(node)
			if err != nil {
				return fmt.Errorf("GPU %s: %w", g.ID, err)
			}
			h.Devices = append(h.Devices, container.DeviceMapping{PathOnHost: node, PathInContainer: node, CgroupPermissions: "rw"})
			if st, ok := info.Sys().(*syscall.Stat_t); ok && !slices.Contains(h.GroupAdd, strconv.Itoa(int(st.Gid))) {
				h.GroupAdd = append(h.GroupAdd, strconv.Itoa(int(st.Gid)))
			}
		}
		for _, kind := range []string{"card", "render"} {
			path := filepath.Join(nodes, "by-path", "pci-"+g.ID+"-"+kind)
			if _, err := os.Lstat(path); err == nil { // a device too: its name has colons, which no bind mount's may have
				h.Devices = append(h.Devices, container.DeviceMapping{PathOnHost: path, PathInContainer: path, CgroupPermissions: "rw"})
			}
		}
	}
	if len(nvidia) > 0 {
		h.DeviceRequests = []container.DeviceRequest{{Driver: "nvidia", DeviceIDs: nvidia, Capabilities: [][]string{{"gpu"}}}}
	}
	return nil
}

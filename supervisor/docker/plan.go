package docker

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"syscall"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"
	"github.com/docker/go-units"

	"roundhouse/supervisor/driver"
	"roundhouse/worker/device"
)

// plan is what a container is made of.
type plan struct {
	config  *container.Config
	host    *container.HostConfig
	network *network.NetworkingConfig
}

// defaultPort is where vLLM listens when nothing says otherwise.
const defaultPort = 8000

// plan turns a Spec into a container.
func (d *Driver) plan(ctx context.Context, spec driver.Spec) (plan, error) {
	c := spec.Container
	labels := map[string]string{}
	for k, v := range c.Labels {
		labels[k] = v
	}
	labels[labelInstance], labels[labelPool], labels[labelWorker] = d.instance, spec.Pool, spec.ID()
	labels[labelHash], labels[labelGeneration] = spec.Hash, strconv.FormatUint(spec.Generation, 10)
	grace := int(spec.Grace.Seconds())
	p := plan{
		config: &container.Config{Image: c.Image, Entrypoint: c.Entrypoint, Env: environment(spec), User: c.User, Labels: labels, StopTimeout: &grace},
		host: &container.HostConfig{
			Binds: c.Volumes, ShmSize: int64(c.ShmSize), IpcMode: container.IpcMode(c.IPC), NetworkMode: container.NetworkMode(c.NetworkMode),
			RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled}, // who restarts is one, and that is us
			LogConfig:     container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "64m", "max-file": "4"}},
		},
	}
	if c.Init {
		p.host.Init = &c.Init
	}
	if p.host.NetworkMode.IsHost() { // an image's own check asks the port that it expects, which may be a neighbour's
		p.config.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
	}
	for name, limit := range c.Ulimits {
		p.host.Ulimits = append(p.host.Ulimits, &units.Ulimit{Name: name, Soft: limit, Hard: limit})
	}
	sort.Slice(p.host.Ulimits, func(i, j int) bool { return p.host.Ulimits[i].Name < p.host.Ulimits[j].Name })
	p.host.CpusetCpus, p.host.CpusetMems = spec.Place.CPUs, device.FormatList(spec.Place.NUMA)
	if err := devices(p.host, d.nodes, spec.Place.GPUs); err != nil {
		return plan{}, err
	}
	port, err := d.connect(ctx, &p, spec)
	if err != nil {
		return plan{}, err
	}
	p.config.Cmd = c.Command
	if c.Command == nil {
		p.config.Cmd = arguments(spec, p.host.NetworkMode.IsHost(), port)
	}
	return p, nil
}

// connect decides how the door reaches the container, and returns the port
// that the server inside listens on.
func (d *Driver) connect(ctx context.Context, p *plan, spec driver.Spec) (int, error) {
	port := spec.Port
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
		p.config.Labels[labelURL] = "http://127.0.0.1:" + strconv.Itoa(port)
		return port, nil
	}
	if port == 0 {
		port = defaultPort
	}
	if nets := spec.Container.Networks; len(nets) > 0 {
		p.host.NetworkMode = container.NetworkMode(nets[0])
		p.network = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{}}
		for _, n := range nets {
			p.network.EndpointsConfig[n] = &network.EndpointSettings{}
		}
		if d.inside {
			p.config.Labels[labelURL] = "http://" + Name(spec) + ":" + strconv.Itoa(port)
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

// environment joins the container's and the engine's, in a fixed order.
func environment(spec driver.Spec) []string {
	all := map[string]string{}
	for k, v := range spec.Container.Environment {
		all[k] = v
	}
	for k, v := range spec.Engine.Environment {
		all[k] = v
	}
	out := make([]string, 0, len(all))
	for k, v := range all {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return out
}

// arguments are the flags of `vllm serve`. On the host's own network the
// engine listens on the loopback: the door alone is for the others.
func arguments(spec driver.Spec, onHost bool, port int) []string {
	e := spec.Engine
	address := "0.0.0.0"
	if onHost {
		address = "127.0.0.1"
	}
	args := []string{"--host", address, "--port", strconv.Itoa(port)}
	if e.Model != "" {
		args = append([]string{"--model", e.Model}, args...)
	}
	if len(e.ServedModelName) > 0 {
		args = append(append(args, "--served-model-name"), e.ServedModelName...)
	}
	if e.Quantization != "" {
		args = append(args, "--quantization", e.Quantization)
	}
	if e.MaxModelLen > 0 {
		args = append(args, "--max-model-len", strconv.Itoa(e.MaxModelLen))
	}
	return append(args, e.Args...)
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

package guard

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"

	"roundhouse/supervisor/moby"
)

// host takes of HostConfig, where the host itself is at stake, what the worker may have.
func (w worker) host(out, in *container.HostConfig, cards cards) error {
	move(&out.Init, &in.Init)
	move(&out.CpusetCpus, &in.CpusetCpus)
	move(&out.CpusetMems, &in.CpusetMems)
	move(&out.ShmSize, &in.ShmSize)
	move(&out.Binds, &in.Binds)
	move(&out.NetworkMode, &in.NetworkMode)
	move(&out.IpcMode, &in.IpcMode)
	move(&out.GroupAdd, &in.GroupAdd)
	move(&out.Ulimits, &in.Ulimits)
	move(&out.PortBindings, &in.PortBindings)
	move(&out.LogConfig, &in.LogConfig)
	move(&out.RestartPolicy, &in.RestartPolicy)
	move(&out.Devices, &in.Devices)
	move(&out.DeviceRequests, &in.DeviceRequests)
	move(&out.CapAdd, &in.CapAdd)
	move(&out.SecurityOpt, &in.SecurityOpt)
	move(&out.ExtraHosts, &in.ExtraHosts)
	move(&out.PidsLimit, &in.PidsLimit)
	move(&out.Memory, &in.Memory)
	move(&out.MemorySwap, &in.MemorySwap)
	if in.MemorySwappiness != nil && *in.MemorySwappiness == -1 { // as clients say that nobody has set it
		in.MemorySwappiness = nil
	}
	for _, check := range []func(*container.HostConfig) error{
		w.sizes, w.binds, w.modes, w.groups, w.ulimits, w.ports, w.lets, w.confines, logged,
		func(h *container.HostConfig) error { return noRestart(h.RestartPolicy) },
		func(h *container.HostConfig) error { return w.devices(h.Devices, cards) },
		func(h *container.HostConfig) error { return w.requests(h.DeviceRequests, cards) },
	} {
		if err := check(out); err != nil {
			return fmt.Errorf("HostConfig.%w", err)
		}
	}
	return unset("HostConfig.", *in)
}

var processors = regexp.MustCompile(`^([0-9]+([,-][0-9]+)*)?$`)

// sizes holds the container to the configuration's memory, and its place to numbers.
func (w worker) sizes(h *container.HostConfig) error {
	switch {
	case h.ShmSize != 0 && h.ShmSize != int64(w.among.ShmSize):
		return fmt.Errorf("ShmSize: %d is not the configuration's shm_size", h.ShmSize)
	case !processors.MatchString(h.CpusetCpus):
		return fmt.Errorf("CpusetCpus: %q is no list of numbers", h.CpusetCpus)
	case !processors.MatchString(h.CpusetMems):
		return fmt.Errorf("CpusetMems: %q is no list of numbers", h.CpusetMems)
	}
	return nil
}

// binds holds bind mounts to those that the configuration names, to the letter.
func (w worker) binds(h *container.HostConfig) error {
	for _, bind := range h.Binds {
		if !slices.Contains(w.among.Volumes, bind) {
			return fmt.Errorf("Binds: %q is no volume of %s", bind, w.id)
		}
	}
	return nil
}

// modes holds the namespaces to the container's own, or the configuration's.
func (w worker) modes(h *container.HostConfig) error {
	c := w.among
	networks := append([]string{"", "none", "bridge", "default"}, c.Networks...)
	if c.NetworkMode != "" {
		networks = append(networks, c.NetworkMode)
	}
	if mode := string(h.NetworkMode); !slices.Contains(networks, mode) {
		return fmt.Errorf("NetworkMode: %q is no network of the pool %q", mode, w.pool.Name)
	}
	if mode := string(h.IpcMode); !slices.Contains([]string{"", "none", "private"}, mode) && mode != c.IPC {
		return fmt.Errorf("IpcMode: %q is not the configuration's", mode)
	}
	return nil
}

// groups are those of GPUs' nodes, by their numbers: a name would be looked up in the
// image, which means what it wants by it.
func (w worker) groups(h *container.HostConfig) error {
	for _, group := range h.GroupAdd {
		if _, err := strconv.ParseUint(group, 10, 32); err != nil {
			return fmt.Errorf("GroupAdd: %q is no number", group)
		}
	}
	return nil
}

func (w worker) ulimits(h *container.HostConfig) error {
	for _, limit := range h.Ulimits {
		if limit == nil {
			return fmt.Errorf("Ulimits: an empty one")
		}
		if given, ok := w.among.Ulimits[limit.Name]; !ok || limit.Soft != given || limit.Hard != given {
			return fmt.Errorf("Ulimits: %s is not the configuration's", limit)
		}
	}
	return nil
}

// ports keeps a worker's port off the network, which is the door's, and from where
// another program of the host is to listen.
func (w worker) ports(h *container.HostConfig) error {
	for port, bindings := range h.PortBindings {
		if _, err := nat.ParsePort(port.Port()); err != nil || port.Proto() != "tcp" || len(bindings) != 1 {
			return fmt.Errorf("PortBindings: %q is not one port of TCP, published once", port)
		}
		b := bindings[0]
		if b.HostIP != "127.0.0.1" && b.HostIP != "::1" {
			return fmt.Errorf("PortBindings: %s is not published on 127.0.0.1", port)
		}
		if b.HostPort != "" && (w.itself.Port == 0 || b.HostPort != strconv.Itoa(w.itself.Port)) {
			return fmt.Errorf("PortBindings: %s is published at %q, which is not the worker's port", port, b.HostPort)
		}
	}
	if len(h.PortBindings) > 1 {
		return fmt.Errorf("PortBindings: a worker has one port")
	}
	return nil
}

// logged has every container's output kept, and bounded.
func logged(h *container.HostConfig) error {
	asked := h.LogConfig
	if (asked.Type != "" || len(asked.Config) > 0) && (asked.Type != moby.LogDriver || !maps.Equal(asked.Config, moby.LogOptions())) {
		return fmt.Errorf("LogConfig: %s with %v; a worker's is %s with %v", asked.Type, slices.Sorted(maps.Keys(asked.Config)), moby.LogDriver, moby.LogOptions())
	}
	h.LogConfig = container.LogConfig{Type: moby.LogDriver, Config: moby.LogOptions()}
	return nil
}

// noRestart: a worker is started by the supervisor alone; an engine that
// restarts it would put a drained worker back.
func noRestart(p container.RestartPolicy) error {
	if p.Name != "" && p.Name != container.RestartPolicyDisabled || p.MaximumRetryCount != 0 {
		return fmt.Errorf("RestartPolicy: it is \"no\": the supervisor restarts workers")
	}
	return nil
}

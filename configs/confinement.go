package configs

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxPids is the most that Linux numbers (PID_MAX_LIMIT).
	maxPids = 4 << 20
	// leastMemory is what Docker takes at least.
	leastMemory = 6 << 20
)

// capabilities are those that engines over several cards use: to map each other's
// memory (SYS_PTRACE), to hold memory for a card or a network (IPC_LOCK), to choose
// memory nodes and priorities (SYS_NICE). Every other is a way to the host.
var capabilities = []string{"SYS_PTRACE", "IPC_LOCK", "SYS_NICE"}

// CheckCapability says why a container may not have a capability, in capitals and
// without CAP_.
func CheckCapability(name string) error {
	if slices.Contains(capabilities, name) {
		return nil
	}
	return fmt.Errorf("cap_add: %q is none of those that an engine uses: %s", name, strings.Join(capabilities, ", "))
}

// accelerators are nodes by which engines compute and talk to each other; in each
// lies nothing but the card.
var accelerators = regexp.MustCompile(`^/dev/(dri/(card|renderD)[0-9]+|dri/by-path/pci-[0-9a-f:.]+-(card|render)|infiniband/uverbs[0-9]+|kfd|accel/accel[0-9]+|nvidia([0-9]+|ctl|-uvm|-uvm-tools|-modeset)|nvidia-caps/nvidia-cap[0-9]+|nvidia-caps-imex-channels/channel[0-9]+)$`)

// CheckDevice says why a container may not have a node beside its own GPUs'.
func CheckDevice(node string) error {
	if path.Clean(node) == node && accelerators.MatchString(node) {
		return nil
	}
	return fmt.Errorf("devices_extra: %q is no accelerator's node; it is one under /dev/dri, /dev/infiniband/uverbs0, /dev/kfd, /dev/accel/accel0, /dev/nvidia0 or the like, with its own name inside", node)
}

var profile = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.+-]{0,127}$`)

// CheckSecurity says why a container may not have a security option: those that
// pass confine it further.
func CheckSecurity(option string) error {
	if option == "no-new-privileges" {
		return nil
	}
	name, ok := strings.CutPrefix(option, "apparmor=")
	switch {
	case ok && profile.MatchString(name) && !strings.EqualFold(name, "unconfined"):
		return nil
	case strings.HasPrefix(option, "seccomp"):
		return fmt.Errorf("security_opt: %q: the engine's own seccomp profile holds; cap_add = [\"SYS_PTRACE\"] and [\"SYS_NICE\"] open the calls that engines over several cards need", option)
	}
	return fmt.Errorf("security_opt: %q; it is \"no-new-privileges\" or \"apparmor=PROFILE\" with a profile that is loaded (aa-status lists them), never unconfined", option)
}

// CheckHost says why a line cannot stand in a container's /etc/hosts.
func CheckHost(line string) error {
	name, address, ok := strings.Cut(line, ":")
	if _, err := netip.ParseAddr(address); ok && goodName.MatchString(name) && (err == nil || address == "host-gateway") {
		return nil
	}
	return fmt.Errorf("extra_hosts: %q; write \"name:address\", such as \"cache.example:10.0.0.7\", or \"host.docker.internal:host-gateway\"", line)
}

// checkConfinement holds a pool of containers to what the guard before an engine
// lets through.
func checkConfinement(d *decoder, path string, c *Container) {
	each := func(name string, list []string, check func(string) error) {
		for i, text := range list {
			if err := check(text); err != nil {
				d.failf(sub(path, name), "%v", err)
			} else if slices.Contains(list[:i], text) {
				d.failf(sub(path, name), "%s: %q is there twice", name, text)
			}
		}
	}
	each("cap_add", c.CapAdd, CheckCapability)
	each("security_opt", c.SecurityOpt, CheckSecurity)
	each("devices_extra", c.DevicesExtra, CheckDevice)
	each("extra_hosts", c.ExtraHosts, CheckHost)
	if c.Memory > 0 && c.ShmSize > c.Memory {
		d.failf(sub(path, "memory"), "memory is %s and shm_size %s, which counts as memory: give more of the one or less of the other", c.Memory, c.ShmSize)
	}
}

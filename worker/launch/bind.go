package launch

import (
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"roundhouse/worker/device"
)

// The kernel's memory policies.
const (
	policyDefault   = 0 // MPOL_DEFAULT
	policyPreferred = 1 // MPOL_PREFERRED
	policyBind      = 2 // MPOL_BIND
)

// Bind puts the process beside its GPU: on the CPUs of the GPU's memory node, with memory
// from there, and with it every buffer that the device copies from. Threads that exist
// keep their places, so the program is executed anew, with args and env, when something has changed; then
// there is nothing left to do, and Bind returns. What the machine or the supervisor has
// settled already stays.
func Bind(o *Options, sysfs string, args, env []string, log *slog.Logger) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	allowed := affinity()
	want, mode := wanted(o, sysfs, allowed)
	changed := false
	if len(want.CPUs) > 0 {
		// A container may allow fewer CPUs than are asked for: what counts is what comes of it.
		changed = setAffinity(want.CPUs) == nil && !slices.Equal(affinity(), allowed)
	}
	if len(want.Nodes) > 0 && memoryPolicy() == policyDefault {
		changed = setMemoryPolicy(mode, want.Nodes) == nil || changed
	}
	if !changed {
		return nil
	}
	log.Info("placing the worker", "device", o.Device, "cpus", device.FormatList(want.CPUs), "nodes", device.FormatList(want.Nodes))
	program, err := os.Executable()
	if err == nil {
		err = syscall.Exec(program, args, env)
	}
	return fmt.Errorf("cannot start again on CPUs %s: %w", device.FormatList(want.CPUs), err)
}

// wanted is what is left to do: what --cpus and --mems say, and otherwise what is beside
// the GPU. The CPU backend places its own threads.
func wanted(o *Options, sysfs string, allowed []int) (b device.Binding, mode int) {
	name, xpu := strings.CutPrefix(o.Device, "xpu")
	if xpu {
		if g, ok := named(o, strings.TrimPrefix(name, ":"), device.GPUs(sysfs)); ok {
			b = device.Bind(sysfs, g, allowed)
		}
	}
	mode = policyPreferred
	if nodes, err := device.ParseList(o.Mems); err == nil && len(nodes) > 0 {
		b.Nodes, mode = nodes, policyBind
	}
	if cpus, err := device.ParseList(o.CPUs); err == nil && len(cpus) > 0 {
		b.CPUs = nil
		if xpu && device.FormatList(cpus) != device.FormatList(allowed) {
			b.CPUs = cpus
		}
	}
	return b, mode
}

// named is the GPU that --device xpu:NAME means. What numbers, UUIDs and the variables that
// hide GPUs mean is OpenCL's to say, as is which one of several a container was given.
func named(o *Options, name string, gpus []device.GPU) (device.GPU, bool) {
	g, ok := device.Named(gpus, name)
	sure := strings.Contains(name, ":") || ok && name == "" && o.GPUMask == "" && o.GPUSelector == ""
	if sure || name == "cpu" || len(gpus) == 0 {
		return g, ok
	}
	if pci := addressOf(o, name); pci != "" {
		return device.Named(gpus, pci)
	}
	return g, ok
}

// Affinity is the CPUs that this process may run on.
func Affinity() []int { return affinity() }

// affinity is the CPUs that this thread may run on.
func affinity() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var out []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			out = append(out, c)
		}
	}
	return out
}

func setAffinity(cpus []int) error {
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	return unix.SchedSetaffinity(0, &set)
}

// memoryPolicy is the policy of this thread; -1 where the kernel does not tell.
func memoryPolicy() int {
	mode := []int32{-1}
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, reflect.ValueOf(mode).Pointer(), 0, 0, 0, 0, 0)
	runtime.KeepAlive(mode)
	if errno != 0 {
		return -1
	}
	return int(mode[0])
}

func setMemoryPolicy(mode int, nodes []int) error {
	last := nodes[len(nodes)-1]
	mask := make([]uint64, last/64+1)
	for _, n := range nodes {
		mask[n/64] |= 1 << (n % 64)
	}
	_, _, errno := unix.Syscall(unix.SYS_SET_MEMPOLICY, uintptr(mode), reflect.ValueOf(mask).Pointer(), uintptr(len(mask)*64+1))
	runtime.KeepAlive(mask)
	if errno != 0 {
		return errno
	}
	return nil
}

package supervisor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"roundhouse/configs"
	"roundhouse/supervisor/driver"
	"roundhouse/worker/device"
)

// planner says where each worker runs, by pool/name.
type planner map[string]driver.Place

// place plans the devices, cores and memory of every worker on this machine.
// All workers on the CPU share it, less a core for the door.
func place(cfg *configs.Config, sysfs string) (planner, error) {
	nodes := device.Nodes(sysfs)
	allowed, err := allowedCPUs()
	if err != nil {
		return nil, err
	}
	var onCPU []string
	for _, p := range cfg.Pools {
		if p.Driver != "process" {
			continue
		}
		for _, w := range p.Workers {
			onCPU = append(onCPU, p.Name+"/"+w.Name)
		}
	}
	plan := planner{}
	for i, share := range device.Split(device.Cores(sysfs, nodes, allowed), len(onCPU)) {
		place := driver.Place{CPUs: device.FormatList(share.CPUs)}
		if len(nodes) > 1 {
			place.NUMA = share.Nodes
		}
		plan[onCPU[i]] = place
	}
	return plan, nil
}

// allowedCPUs are those that this process may run on.
func allowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("cannot read which CPUs are allowed: %w", err)
	}
	var out []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			out = append(out, c)
		}
	}
	return out, nil
}

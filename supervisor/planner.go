package supervisor

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/configs"
	"roundhouse/configs/workerid"
	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
	"roundhouse/worker/device"
)

// planner says where each worker runs, by pool/name.
type planner struct {
	places map[string]driver.Place
	needs  map[string]device.Need
	lacks  map[string]string // why there is no place
}

// place plans the devices, cores and memory of every worker on this machine.
// kept are the devices that workers had before, by pool/name.
func place(cfg *configs.Config, sysfs, proc string, kept map[string][]string) (planner, error) {
	machine, err := readMachine(sysfs, proc, kept)
	if err != nil {
		return planner{}, err
	}
	return placeOn(cfg, machine, kept), nil
}

// readMachine reads what there is, and what strangers hold of it.
func readMachine(sysfs, proc string, kept map[string][]string) (device.Machine, error) {
	allowed, err := allowedCPUs()
	if err != nil {
		return device.Machine{}, err
	}
	machine := device.Read(sysfs, allowed)
	machine.Occupied = strangers(machine, proc, kept)
	return machine, nil
}

// Machine reads this machine as a supervisor does that begins on it.
func Machine(sysfs, proc string) (device.Machine, error) { return readMachine(sysfs, proc, nil) }

// Places says where the workers of a configuration would run on a machine, by
// pool/name. Those that have no place are left out.
func Places(cfg *configs.Config, m device.Machine) map[string]driver.Place {
	plan := placeOn(cfg, m, nil)
	maps.DeleteFunc(plan.places, func(id string, _ driver.Place) bool { return plan.lacks[id] != "" })
	return plan.places
}

// Problems says what stands against a configuration on a machine.
func Problems(cfg *configs.Config, m device.Machine) []device.Problem {
	needs, _ := needsOf(cfg, m, nil)
	return m.Problems(needs)
}

func placeOn(cfg *configs.Config, machine device.Machine, kept map[string][]string) planner {
	needs, plan := needsOf(cfg, machine, kept)
	places, left := machine.Fit(needs)
	for _, n := range needs {
		plan.needs[n.ID] = n
		if err := left[n.ID]; err != nil {
			plan.lacks[n.ID] = err.Error()
		}
	}
	for id, p := range places {
		out := plan.places[id]
		out.CPUs, out.NUMA = device.FormatList(p.CPUs), p.Nodes
		for _, g := range p.GPUs {
			out.GPUs = append(out.GPUs, driver.GPU{ID: g.PCI, Vendor: g.Vendor, Render: g.Render, Card: g.Card})
		}
		plan.places[id] = out
	}
	return plan
}

// needsOf is what each worker wants of a machine, and what of its place no plan
// decides.
func needsOf(cfg *configs.Config, machine device.Machine, kept map[string][]string) ([]device.Need, planner) {
	var needs []device.Need
	plan := planner{places: map[string]driver.Place{}, needs: map[string]device.Need{}, lacks: map[string]string{}}
	for _, p := range cfg.Pools {
		if p.Driver != "process" && p.Driver != "docker" {
			continue
		}
		for _, w := range p.Workers {
			id := workerid.Of(p.Name, w.Name)
			n := device.Need{ID: id, GPUs: pciOnly(w.GPUs), Keep: kept[id]}
			if len(w.GPUs) == 0 {
				n.Count = wanted(p, machine)
			}
			needs = append(needs, n)
			plan.places[id] = driver.Place{GPUs: byUUID(w.GPUs)}
		}
		// Which cards NVIDIA's names stand for sysfs does not say, so none of them is known to be free.
		if p.Rotation.Strategy == "surge" && !slices.ContainsFunc(p.Workers, func(w configs.Worker) bool { return len(byUUID(w.GPUs)) > 0 }) {
			id := workerid.Of(p.Name, core.Relief)
			needs = append(needs, device.Need{ID: id, Count: spare(p, machine), Keep: kept[id], Spare: true})
		}
	}
	return needs, plan
}

// spare is how many GPUs a pool's relief gets: as many as the others have.
func spare(p configs.Pool, m device.Machine) int {
	for _, w := range p.Workers {
		if len(w.GPUs) > 0 {
			return len(w.GPUs)
		}
	}
	return wanted(p, m)
}

// wanted is how many GPUs a worker of a pool gets by devices = "auto". The
// demonstration model is small enough for the CPU where there is no GPU.
func wanted(p configs.Pool, m device.Machine) int {
	if p.Devices == "cpu" {
		return 0
	}
	usable := slices.ContainsFunc(m.GPUs, device.GPU.Usable)
	if p.Driver == "process" && p.Engine.Model == "" && !usable {
		return 0
	}
	return max(1, p.GPUsPerWorker)
}

func pciOnly(ids []string) []string {
	var out []string
	for _, id := range ids {
		if !strings.Contains(id, "-") {
			out = append(out, id)
		}
	}
	return out
}

// byUUID are the devices that are known by NVIDIA's names alone; sysfs has
// other ones, so nothing is planned beside them.
func byUUID(ids []string) []driver.GPU {
	var out []driver.GPU
	for _, id := range ids {
		if strings.Contains(id, "-") {
			out = append(out, driver.GPU{ID: id, Vendor: "nvidia"})
		}
	}
	return out
}

// strangers finds the GPUs that processes hold which are not our workers'.
func strangers(m device.Machine, proc string, kept map[string][]string) map[string]string {
	out := map[string]string{}
	ours := map[string]bool{}
	for _, list := range kept {
		for _, pci := range list {
			ours[pci] = true
		}
	}
	for _, g := range m.GPUs {
		if g.Vendor != "intel" || !g.Usable() || ours[g.PCI] {
			continue
		}
		holders, _ := device.Holders(proc, g.PCI)
		for _, h := range holders {
			// A desktop holds a little of every card; a model holds much.
			if h.Bytes > 256<<20 {
				out[g.PCI] = "process " + strconv.Itoa(h.PID)
			}
		}
	}
	return out
}

// keptDevices are those that each worker was last started with.
func (s *Supervisor) keptDevices() map[string][]string {
	out := map[string][]string{}
	for id, w := range s.memory.intent.Workers {
		for _, g := range s.memory.specs[w.Hash].Place.GPUs {
			if g.Vendor == "intel" {
				out[id] = append(out[id], g.ID)
			}
		}
	}
	return out
}

// settleTime is how long a device whose memory cannot be read is left alone
// after the process that held it has gone.
const settleTime = 5 * time.Second

// release is what is known of the devices of a worker that has ended.
type release struct {
	generation uint64
	since      time.Time
	looked     time.Time
	done       bool
}

// released reports whether the devices of a worker that has ended are free again.
func (s *Supervisor) released(m *member, now time.Time) bool {
	i := m.instance
	gpus := i.Place.GPUs
	if len(gpus) == 0 {
		gpus = s.memory.specs[i.Hash].Place.GPUs
	}
	if len(gpus) == 0 {
		return i.Released
	}
	r := m.release
	if r.generation != i.Generation || r.since.IsZero() {
		r = release{generation: i.Generation, since: now}
	}
	if !r.done && now.Sub(r.looked) > time.Second {
		r.looked = now
		r.done = s.devicesFree(i.ID, gpus, now.Sub(r.since))
	}
	m.release = r
	return r.done
}

// devicesFree measures where it can and waits where it cannot.
func (s *Supervisor) devicesFree(id string, gpus []driver.GPU, gone time.Duration) bool {
	measured := true
	for _, g := range gpus {
		if g.Vendor != "intel" {
			measured = false
			continue
		}
		holders, complete := device.Holders(s.options.Proc, g.ID)
		measured = measured && complete
		for _, h := range holders {
			if h.Bytes > 0 {
				return false
			}
		}
	}
	if measured {
		return true
	}
	if gone < settleTime {
		return false
	}
	pool := workerid.Pool(id)
	s.events.note(pool, id, "unverified", fmt.Sprintf("its device's memory cannot be read; it is taken for free %v after its process went", settleTime))
	return true
}

// allowedCPUs are those that this process may run on.
func allowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
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

// expect tells the docker driver which containers it takes over.
func (s *Supervisor) expect() {
	for _, r := range s.runners {
		if e, ok := r.driver.(interface{ Expect([]driver.Spec) }); ok {
			var specs []driver.Spec
			for _, p := range s.plan.pools {
				for _, w := range p.Workers {
					specs = append(specs, s.memory.specs[w.Hash])
				}
			}
			e.Expect(specs)
		}
	}
}

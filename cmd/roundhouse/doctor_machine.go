package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"roundhouse/configs"
	"roundhouse/supervisor"
	"roundhouse/supervisor/docker"
	"roundhouse/supervisor/moby"
	"roundhouse/worker/device"
)

// facts are what doctor asks of the machine; tests have other answers.
type facts struct {
	files   uint64 // open files that may be had
	memory  uint64 // bytes; 0: unknown
	synced  bool   // the clock is kept right by somebody
	now     time.Time
	listen  func(address string) error // whether an address could be had
	access  func(path string, mode uint32) error
	dial    func(network, address string) error
	engine  func(moby.Host) (docker.Powers, error)
	machine func(sysfs, proc string) (device.Machine, error)
}

// realFacts asks this machine.
func realFacts() facts {
	f := facts{
		now: time.Now(), access: unix.Access, machine: supervisor.Machine,
		engine: func(host moby.Host) (docker.Powers, error) { return docker.Ask(context.Background(), host) },
		listen: func(address string) error {
			l, err := net.Listen("tcp", address)
			if err != nil {
				return err
			}
			return l.Close()
		},
		dial: func(network, address string) error {
			c, err := net.DialTimeout(network, address, 5*time.Second)
			if err != nil {
				return err
			}
			return c.Close()
		},
	}
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		f.files = files.Max
	}
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) == nil {
		f.memory = info.Totalram * uint64(info.Unit)
	}
	const unsynchronised = 5 // TIME_ERROR
	state, err := unix.Adjtimex(&unix.Timex{})
	f.synced = err == nil && state != unsynchronised
	return f
}

// plan says where each worker would run, and what stands against it.
func (d *doctor) plan() {
	m, err := d.facts.machine(d.sysfs, d.proc)
	if err != nil {
		d.note("fail", "plan", "look at Cpus_allowed_list in /proc/self/status, and at what set it", "%v", err)
		return
	}
	for _, p := range supervisor.Problems(d.cfg, m) {
		state := "warn"
		if p.Fatal {
			state = "fail"
		}
		d.note(state, p.About, p.Remedy, "%s", p.Text)
	}
	places := supervisor.Places(d.cfg, m) // of those without one is told above
	for _, id := range sortedNames(places) {
		p := places[id]
		where := []string{}
		for _, g := range p.GPUs {
			where = append(where, "GPU "+g.ID)
		}
		if p.CPUs != "" {
			where = append(where, "CPUs "+p.CPUs)
		}
		if len(p.NUMA) > 0 {
			where = append(where, "memory of node "+device.FormatList(p.NUMA))
		}
		if len(where) == 0 {
			where = append(where, "anywhere")
		}
		d.note("ok", "plan", "", "%s: %s", id, strings.Join(where, ", "))
	}
}

func sortedNames[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// machine looks at limits, memory, ports, the clock, and what drivers need.
func (d *doctor) machine() {
	need := uint64(2*d.cfg.Door.Limits.Connections + 1000)
	if d.facts.files < need {
		d.note("warn", "limits", "raise LimitNOFILE (systemd) or ulimit -n, or lower door limits connections", "%d open files are allowed here; %d connections take up to %d", d.facts.files, d.cfg.Door.Limits.Connections, need)
	} else {
		d.note("ok", "limits", "", "%d open files are allowed", d.facts.files)
	}
	if total := configs.Size(d.facts.memory >> 20 << 20); total > 0 && d.cfg.Door.Memory > total/2 {
		d.note("warn", "memory", "set door memory", "the door may hold %s of bodies; this machine has %s", d.cfg.Door.Memory, total)
	}
	d.clock()
	d.ports()
	dir := d.cfg.StateDir
	for dir != "/" {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	if d.facts.access(dir, 2) != nil {
		d.note("warn", "state_dir", "run this as the user that runs roundhouse, or set state_dir", "this user may not write to %s", dir)
	}
	if slices.ContainsFunc(d.cfg.Pools, func(p configs.Pool) bool { return p.Driver == "docker" || p.Driver == "swarm" }) {
		d.docker()
	}
}

// clock reports whether schedules come when they should.
func (d *doctor) clock() {
	switch scheduled := slices.ContainsFunc(d.cfg.Pools, func(p configs.Pool) bool { return p.Rotation.Schedule != "" }); {
	case d.facts.now.Year() < 2025:
		d.note("fail", "clock", "set it: timedatectl set-ntp true", "it is %s by this machine", d.facts.now.Format("2 January 2006"))
	case !d.facts.synced && scheduled:
		d.note("warn", "clock", "timedatectl set-ntp true", "nothing keeps it right, and rotations are scheduled by it")
	default:
		d.note("ok", "clock", "", "%s", d.facts.now.Format(time.RFC3339))
	}
}

// ports reports whether the addresses that are to be listened on can be had. Where
// roundhouse runs they are its own.
func (d *doctor) ports() {
	if slices.ContainsFunc(d.findings, func(f finding) bool { return strings.HasPrefix(f.Check, "pool ") || f.Check == "wall" }) {
		return
	}
	for _, l := range [][2]string{{"door.listen", d.cfg.Door.Listen}, {"admin.listen", d.cfg.Admin.Listen}} {
		name, address := l[0], l[1]
		if strings.HasPrefix(address, "unix://") {
			continue
		}
		err := d.facts.listen(address)
		switch {
		case err == nil:
			d.note("ok", "ports", "", "%s %s is free", name, address)
		case errors.Is(err, syscall.EADDRINUSE):
			d.note("fail", "ports", "ss -ltnp shows who; end it, or set "+name, "%s %s is taken by another program", name, address)
		case errors.Is(err, syscall.EACCES):
			d.note("fail", "ports", "setcap cap_net_bind_service=+ep on the program, run it as root, or take a port from 1024 on", "%s %s is not for this user", name, address)
		default:
			d.note("fail", "ports", "set "+name+" to an address of this machine", "%s %s cannot be had: %v", name, address, err)
		}
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/phase"
	"roundhouse/configs"
	"roundhouse/kube"
	"roundhouse/worker/device"
)

// finding is one thing that doctor has looked at.
type finding struct {
	Check  string `json:"check"`
	State  string `json:"state"` // ok, note, warn or fail
	Text   string `json:"text"`
	Action string `json:"action,omitempty"`
}

// doctor looks over this machine and a running roundhouse.
type doctor struct {
	*console
	*client
	cfg      *configs.Config // nil without -c
	root     string
	sysfs    string
	proc     string
	facts    facts
	account  string       // the folder of the account for the cluster's API server
	kube     *kube.Client // nil: not asked yet
	findings []finding
}

// doctorCommand says what is not as it should be.
func doctorCommand(c *console) *cobra.Command {
	var f adminFlags
	var bundle, account string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look over this machine and what runs, and say what to do",
		Long: `Look over this machine and what runs: the configuration (-c FILE), the admin
API, pools and workers, the wall between door and supervisor, GPUs; with -c FILE
also where each worker would run, ports, limits, memory, the clock and what the
drivers need. --bundle writes all of it, with states, events, metrics and the ends of
the logs, into a file for a bug report; secrets are taken out.`,
		GroupID: groupLook,
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &doctor{console: c, root: "/", sysfs: "/sys", proc: "/proc", facts: realFacts(), account: account}
			if f.file != "" {
				cfg, err := configs.Load(f.file, c.env)
				d.configuration(f.file, cfg, err)
				if err != nil {
					f.file = ""
				}
				d.cfg = cfg
			}
			a, err := f.client(c)
			if err != nil {
				return err
			}
			d.client = a
			d.all(cmd.Context())
			if bundle != "" {
				if err := d.bundle(cmd.Context(), bundle); err != nil {
					return err
				}
			}
			return d.print(f.json, bundle)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&account, "kubernetes-account", "", "the folder with token, ca.crt and namespace for pools of pods (default: "+kube.Account+")")
	cmd.Flags().StringVar(&bundle, "bundle", "", "write everything into this .tar.gz, which must not exist yet")
	return cmd
}

func (d *doctor) note(state, check, action, format string, args ...any) {
	d.findings = append(d.findings, finding{check, state, fmt.Sprintf(format, args...), action})
}

func (d *doctor) all(ctx context.Context) {
	d.running(ctx)
	d.devices()
	if d.cfg != nil {
		d.plan()
		d.own()
		d.machine()
		d.swarm(ctx)
		d.cluster(ctx)
	}
}

func (d *doctor) configuration(file string, cfg *configs.Config, err error) {
	if err != nil {
		d.note("fail", "configuration", "mend it; `roundhouse validate "+file+"` tries again", "%v", err)
		return
	}
	for _, w := range cfg.Warnings {
		d.note("warn", "configuration", "", "%v", w)
	}
	d.note("ok", "configuration", "", "%s is valid", file)
}

// running looks at what the admin API says.
func (d *doctor) running(ctx context.Context) {
	top, pools, err := d.pools(ctx)
	var coded *codedError
	if errors.As(err, &coded) && coded.code == exitUnreachable {
		d.note("note", "running", "", "no roundhouse runs here: %v", err)
		return
	}
	if err != nil {
		d.note("fail", "running", "", "%v", err)
		return
	}
	var door control.DoorShown
	if err := json.Unmarshal(top.Door, &door); err != nil {
		d.note("fail", "door", "", "the door in the answer: %v", err)
	}
	for _, f := range door.Faults {
		d.note("fail", "door", "mend what it says, then `roundhouse reload`", "it could not take up its %s and goes on with the old: %s", strings.ReplaceAll(f.What, "_", " "), printable(f.Error))
	}
	for _, p := range pools {
		switch {
		case p.Rotation.State == "halted":
			d.note("fail", "pool "+p.Name, "`roundhouse rotate --status "+p.Name+"` says why; then --continue or --abort", "its rotation has halted")
		case p.Ready == 0:
			d.note("fail", "pool "+p.Name, "`roundhouse ps` and `roundhouse logs "+p.Name+"`", "no worker of %d is ready", p.Desired)
		case p.Ready < p.Desired:
			d.note("warn", "pool "+p.Name, "`roundhouse ps` says which and why", "%d of %d workers are ready", p.Ready, p.Desired)
		default:
			d.note("ok", "pool "+p.Name, "", "%d of %d workers are ready", p.Ready, p.Desired)
		}
	}
	workers, err := d.workers(ctx)
	if err != nil {
		d.note("fail", "workers", "", "%v", err)
		return
	}
	for _, w := range workers.Workers {
		if w.State == phase.Failed || w.State == phase.Quarantined {
			why, action := d.failure(ctx, w)
			d.note("fail", "worker "+w.ID, action, "%s: %s", w.State, printable(why))
		}
	}
	var version struct {
		PID int `json:"pid"`
	}
	if d.ask(ctx, "GET", "/api/version", nil, &version) == nil && version.PID != 0 {
		d.wall(version.PID)
	}
}

// wall reports whether the door, which faces the network, could do what the
// supervisor may.
func (d *doctor) wall(supervisor int) {
	door, owner := d.child(supervisor, "balance")
	mine := uid(filepath.Join(d.proc, strconv.Itoa(supervisor)))
	switch {
	case door == 0:
		d.note("note", "wall", "", "the door is no child of the supervisor on this machine")
	case owner == mine && mine == 0:
		d.note("fail", "wall", "restart roundhouse: as root, the door takes a user of its own", "the door runs as root")
	case owner == mine:
		d.note("warn", "wall", "run `roundhouse up` as root, or door and supervisor apart (balance, supervise)", "door and supervisor run as the same user (%d): whoever takes the door over has what the supervisor has", mine)
	default:
		d.note("ok", "wall", "", "the door runs as user %d, the supervisor as %d", owner, mine)
	}
}

// child finds a child process by a word of its command line.
func (d *doctor) child(parent int, word string) (pid, owner int) {
	entries, err := os.ReadDir(d.proc)
	if err != nil {
		return 0, 0
	}
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join(d.proc, e.Name())
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !slices.Contains(strings.Split(string(line), "\x00"), word) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(dir, "status"))
		if err == nil && strings.Contains(string(stat), fmt.Sprintf("\nPPid:\t%d\n", parent)) {
			return n, uid(dir)
		}
	}
	return 0, 0
}

func uid(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

// devices lists the GPUs, whose addresses a configuration may name.
func (d *doctor) devices() {
	gpus := device.GPUs(d.sysfs)
	usable, intel := 0, 0
	for _, g := range gpus {
		text := fmt.Sprintf("%s %s, driver %s, node %d, %s", g.PCI, device.Product(g), orNone(g.Driver), g.Node, memoryOf(g))
		text += vitals(device.NewMeter(d.sysfs, d.proc, g).Read(time.Now()))
		switch {
		case !g.Usable():
			d.note("note", "gpu", "", "%s; no worker can run on it", text)
		case g.Render != "" && d.facts.access(g.Render, 6) != nil:
			d.note("warn", "gpu", "usermod -aG render USER, and log in anew", "%s; this user may not open %s", text, g.Render)
		default:
			usable++
			d.note("ok", "gpu", "", "%s", text)
		}
		if g.Vendor == "intel" && g.Usable() {
			intel++
			d.shared(g)
		}
	}
	if intel > 0 {
		d.opencl(d.root)
	}
	if usable == 0 {
		d.note("note", "gpu", "", "no GPU that a worker can run on; the demonstration model runs on the CPU")
	}
}

// memoryOf is the memory of a GPU, as far as its kind tells.
func memoryOf(g device.GPU) string {
	switch {
	case g.Integrated:
		return "no memory of its own"
	case g.MemoryBytes == 0:
		return "memory unknown"
	}
	return configs.Size(g.MemoryBytes).String()
}

// shared reports whether several processes compute on one GPU.
func (d *doctor) shared(g device.GPU) {
	holders, _ := device.Holders(d.proc, g.PCI)
	var pids []string
	for _, h := range holders {
		if h.Bytes > 0 {
			pids = append(pids, strconv.Itoa(h.PID))
		}
	}
	if len(pids) > 1 {
		d.note("warn", "gpu", "give each worker a GPU of its own (gpus = [\"…\"]), or stop one of them", "%s: the processes %s hold memory of it", g.PCI, strings.Join(pids, ", "))
	}
}

// opencl reports whether the worker's own engine finds the GPUs.
func (d *doctor) opencl(root string) {
	library, drivers := device.OpenCL(root)
	switch {
	case !library:
		d.note("warn", "opencl", "install ocl-icd-libopencl1 (Debian, Ubuntu); vLLM's containers bring their own", "the OpenCL library is not installed: our own engine cannot use the GPU")
	case !device.IntelDriver(drivers):
		d.note("warn", "opencl", "install intel-opencl-icd (Debian, Ubuntu); vLLM's containers bring their own", "no OpenCL driver of Intel's is installed (there are %s): our own engine cannot use the GPU", orNone(strings.Join(drivers, ", ")))
	default:
		d.note("ok", "opencl", "", "library and driver are there (%s)", strings.Join(drivers, ", "))
	}
}

// vitals is what a GPU's sensors say; nothing where they say nothing.
func vitals(r device.Reading) string {
	var text string
	for _, v := range []struct {
		format string
		value  float64
	}{
		{", %.1f GiB used", r.MemoryUsed / (1 << 30)}, {", %.0f MHz", r.Frequency / 1e6}, {", %.0f °C", r.Temperature}, {", %.0f W", r.Power},
	} {
		if !math.IsNaN(v.value) {
			text += fmt.Sprintf(v.format, v.value)
		}
	}
	return text
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func (d *doctor) print(asJSON bool, bundle string) error {
	failed := slices.ContainsFunc(d.findings, func(f finding) bool { return f.State == "fail" })
	if asJSON {
		if err := d.printJSON(map[string]any{"schema": 1, "findings": d.findings}); err != nil {
			return err
		}
	} else {
		for _, f := range d.findings {
			fmt.Fprintf(d.out, "%-4s  %s: %s\n", f.State, f.Check, f.Text)
			if f.Action != "" {
				fmt.Fprintf(d.out, "      → %s\n", f.Action)
			}
		}
		if bundle != "" {
			fmt.Fprintf(d.out, "\n%s holds all of it. Look through it before you send it.\n", bundle)
		}
	}
	if failed {
		return &codedError{exitFailed, errSaid}
	}
	return nil
}

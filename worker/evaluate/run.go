package evaluate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"roundhouse/kernels"
	"roundhouse/kernels/measure"
	"roundhouse/worker/device"
)

// Options bound an evaluation and say how devices are had.
type Options struct {
	Short   bool
	Bytes   int           // of memory that a measurement goes round; 0: 1 GiB
	Rounds  int           // copies between two looks at the clock; 0: 4
	Time    time.Duration // of each measurement; 0: half a second
	Vectors []int         // numbers of a vector that is summed; nil: of one token and of a prompt
	Sums    int           // sums between two looks at the clock; 0: 50

	Sysfs, Proc string // empty: /sys and /proc
	Allowed     []int  // processors that may be used

	Devices   []string // as --device names them: "cpu", "xpu:0000:03:00.0"
	Open      func(name string) (kernels.Backend, error)
	Transfers func(report func(measure.Transfer)) error // nil: there is no OpenCL
	Kernels   measure.Options

	Progress func(format string, args ...any) // nil: nobody looks
	Version  string
}

func (o *Options) complete() {
	if o.Short {
		o.Bytes, o.Rounds, o.Time, o.Sums = 32<<20, 1, 20*time.Millisecond, 5
		o.Vectors, o.Kernels = []int{4096}, measure.Short()
	}
	if o.Bytes == 0 {
		o.Bytes = 1 << 30
	}
	o.Rounds, o.Sums = max(o.Rounds, 1), max(o.Sums, 1)
	if !o.Short {
		o.Rounds, o.Sums = max(o.Rounds, 4), max(o.Sums, 50)
	}
	if o.Time == 0 {
		o.Time = time.Second / 2
	}
	if o.Vectors == nil {
		o.Vectors = []int{4096, 4096 * 512}
	}
	if o.Sysfs == "" {
		o.Sysfs = "/sys"
	}
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	o.Kernels.Kinds, o.Kernels.Apart = []measure.Kind{measure.OneRow, measure.ManyRows}, true
}

// Run measures the machine. What cannot be measured is one of the report's failures, and
// the rest goes on.
func Run(o Options) *Report {
	o.complete()
	m := device.Read(o.Sysfs, o.Allowed)
	r := &Report{Schema: 1, Version: o.Version, Taken: time.Now().UTC().Format(time.RFC3339), Short: o.Short, Machine: machine(m, o)}
	before := ticks(o.Proc)
	time.Sleep(min(o.Time, 300*time.Millisecond)) // what others do is seen only while this does nothing
	idle := ticks(o.Proc)
	r.Load.Busy = idle.busy(before) * float64(len(o.Allowed))

	failed := func(what string, err error) {
		if err != nil {
			r.Failures = append(r.Failures, what+": "+err.Error())
		}
	}
	var err error
	o.Progress("memory of %d nodes", len(m.Nodes))
	r.Memory, err = memory(m.Nodes, m.Cores, o)
	failed("memory", err)
	o.Progress("sums over threads")
	r.Sums, err = sums(m.Nodes, m.Cores, o)
	failed("sums over threads", err)
	for _, name := range o.Devices {
		o.Progress("kernels on %s", name)
		d, err := r.kernels(name, o)
		failed("kernels on "+name, err)
		if err == nil {
			r.Devices = append(r.Devices, d)
		}
	}
	if o.Transfers != nil {
		o.Progress("links of cards")
		failed("links of cards", o.Transfers(func(f measure.Transfer) { r.Transfers = append(r.Transfers, f) }))
	}
	r.Load.Stolen = ticks(o.Proc).stolen(idle)
	r.Load.Heat = device.CPUClocks(o.Sysfs, o.Allowed).Throttled - r.Machine.Clock.Throttled
	r.Suspicions = append(placed(m), Suspect(r)...)
	return r
}

// placed is what the machine's own files say is wrong.
func placed(m device.Machine) (all []Suspicion) {
	for _, p := range m.Problems(nil) {
		all = append(all, Suspicion{p.About, p.Text, p.Remedy})
	}
	return all
}

func machine(m device.Machine, o Options) Machine {
	out := Machine{Processor: processor(o.Proc), Cores: len(m.Cores), Quota: device.Quota(o.Proc, o.Sysfs),
		Clock: device.CPUClocks(o.Sysfs, o.Allowed), HugePages: device.HugePages(o.Sysfs)}
	for _, n := range m.Nodes {
		cpus := slices.DeleteFunc(slices.Clone(n.CPUs), func(c int) bool { return !slices.Contains(o.Allowed, c) })
		out.Nodes = append(out.Nodes, Node{n.ID, device.FormatList(cpus), n.MemoryBytes})
	}
	for _, g := range m.GPUs {
		c := Card{PCI: g.PCI, Product: device.Product(g), Driver: g.Driver, Node: g.Node, MemoryBytes: g.MemoryBytes, Usable: g.Usable()}
		if l, ok := device.LinkOf(o.Sysfs, g.PCI); ok {
			c.Link = &l
		}
		out.Cards = append(out.Cards, c)
	}
	return out
}

// kernels measures one device, and its card's clock and link meanwhile: a card that has
// nothing to do goes slower than it can.
func (r *Report) kernels(name string, o Options) (Device, error) {
	be, err := o.Open(name)
	if err != nil {
		return Device{}, err
	}
	defer be.Close()
	d := Device{Name: name, Title: be.Name()}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() { r.watch(name, o, end); close(ended) }()
	defer func() { close(end); <-ended }()
	bare, err := measure.Copy(be, o.Kernels)
	if err != nil {
		return d, err
	}
	d.Copy = bare.Rate()
	return d, measure.Kernels(be, o.Kernels, func(f measure.Figures) { d.Linears = append(d.Linears, f) })
}

// watch looks at a card while it works: the fastest clock and link that it shows, and
// every reason for going slower.
func (r *Report) watch(name string, o Options, end <-chan struct{}) {
	i := slices.IndexFunc(r.Machine.Cards, func(c Card) bool { return "xpu:"+c.PCI == name })
	if i < 0 {
		return
	}
	card := &r.Machine.Cards[i]
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c := device.ClockOf(o.Sysfs, card.PCI)
			card.Clock.Now, card.Clock.Max = max(card.Clock.Now, c.Now), c.Max
			for _, why := range c.Throttle {
				if !slices.Contains(card.Clock.Throttle, why) {
					card.Clock.Throttle = append(card.Clock.Throttle, why)
				}
			}
			if l, ok := device.LinkOf(o.Sysfs, card.PCI); ok && (card.Link == nil || l.Rate() > card.Link.Rate()) {
				card.Link = &l
			}
		case <-end:
			return
		}
	}
}

// processor is the name of the machine's processor.
func processor(proc string) string {
	text, _ := os.ReadFile(filepath.Join(proc, "cpuinfo"))
	for scan := bufio.NewScanner(bytes.NewReader(text)); scan.Scan(); {
		if key, value, ok := strings.Cut(scan.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// times are the processors' since the start, in the kernel's ticks.
type times struct{ all, idle, steal float64 }

func ticks(proc string) (t times) {
	text, _ := os.ReadFile(filepath.Join(proc, "stat"))
	line, _, _ := strings.Cut(string(text), "\n")
	for i, f := range strings.Fields(line) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil || i > 8 { // guests are counted twice
			continue
		}
		t.all += v
		switch i {
		case 4, 5: // idle, waiting for a disk
			t.idle += v
		case 8:
			t.steal += v
		}
	}
	return t
}

// busy is the share of the time since then in which processors worked.
func (t times) busy(since times) float64 {
	return share(t.all-since.all-(t.idle-since.idle), t.all-since.all)
}

// stolen is the share that the hypervisor gave to others.
func (t times) stolen(since times) float64 { return share(t.steal-since.steal, t.all-since.all) }

func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return part / whole
}

// ErrNothing says that no measurement could be taken.
var ErrNothing = errors.New("nothing could be measured")

// Err is the error of a report in which nothing was measured.
func (r *Report) Err() error {
	if len(r.Memory) == 0 && len(r.Devices) == 0 && len(r.Transfers) == 0 {
		return fmt.Errorf("%w: %s", ErrNothing, strings.Join(r.Failures, "; "))
	}
	return nil
}

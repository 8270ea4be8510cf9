package evaluate

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"roundhouse/kernels/measure"
)

// Write prints the report as a page. What is suspicious comes first: it is what the page
// is read for.
func (r *Report) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }
	r.writeMachine(line)
	line("")
	if len(r.Suspicions) == 0 {
		line("Nothing is suspicious.")
	} else {
		line("Suspicious:")
		for _, s := range r.Suspicions {
			line("  %s: %s", s.About, s.Text)
			line("      → %s", s.Remedy)
		}
	}
	for _, f := range r.Failures {
		line("Not measured: %s", f)
	}
	if r.Short {
		line("These are the small sizes of --short: whether it works, not how fast.")
	}
	r.writeMemory(line)
	r.writeDevices(line)
	r.writeTransfers(line)
	return t.Flush()
}

func (r *Report) writeMachine(line func(string, ...any)) {
	m := r.Machine
	line("%s: %d cores, %d memory nodes, %d cards", orUnknown(m.Processor), m.Cores, len(m.Nodes), len(m.Cards))
	if m.Quota > 0 {
		line("a control group gives %.1f processors of them", m.Quota)
	}
	for _, n := range m.Nodes {
		if n.MemoryBytes > 0 {
			line("node %d: CPUs %s, %.0f GiB", n.ID, n.CPUs, gib(n.MemoryBytes))
		}
	}
	for _, c := range m.Cards {
		link := "link unknown"
		if c.Link != nil {
			link = fmt.Sprintf("link %g GT/s × %d (%.1f GB/s) of %g × %d", c.Link.Speed, c.Link.Width, c.Link.Rate()/1e9, c.Link.MaxSpeed, c.Link.MaxWidth)
		}
		line("gpu %s: %s, driver %s, node %d, %.0f GiB, %s", c.PCI, orUnknown(c.Product), orUnknown(c.Driver), c.Node, gib(c.MemoryBytes), link)
	}
}

func (r *Report) writeMemory(line func(string, ...any)) {
	if len(r.Memory) > 0 {
		line("\nMemory\tof node\tthreads\tcopy GB/s\tlatency ns")
		for _, p := range r.Memory {
			line("CPUs of node %d\t%d\t%d\t%.1f\t%.0f", p.CPUs, p.Memory, p.Threads, p.Rate/1e9, p.Latency*1e9)
		}
	}
	if len(r.Sums) > 0 {
		line("\nAll-reduce over threads\tKiB\tµs\tGB/s a rank")
		for _, s := range r.Sums {
			line("%d ranks\t%d\t%.1f\t%.1f", s.Ranks, s.Bytes>>10, s.Seconds*1e6, s.Rate()/1e9)
		}
	}
}

// writeDevices prints the products. A share of the copy says how near a product of one
// row, which reads each weight once, is to what memory gives.
func (r *Report) writeDevices(line func(string, ...any)) {
	for _, d := range r.Devices {
		line("\n%s: %s; a bare copy moves %.1f GB/s", d.Name, d.Title, d.Copy/1e9)
		line("product\tµs\tGB/s\tof copy\tGop/s")
		for _, f := range d.Linears {
			line("%s\t%.1f\t%.1f\t%.0f%%\t%.1f", f.Name, f.Seconds*1e6, f.Rate()/1e9, 100*f.Rate()/d.Copy, f.Speed()/1e9)
		}
	}
}

func (r *Report) writeTransfers(line func(string, ...any)) {
	if len(r.Transfers) == 0 {
		return
	}
	line("\nWay\tfrom\tto\tKiB\tµs\tGB/s\tof link")
	for _, f := range r.Transfers {
		from, to, limit := fmt.Sprintf("%.20s", f.From), fmt.Sprintf("%.20s", f.To), "" // a name, where there is no address
		if f.Way == measure.Reduce {
			from, to = fmt.Sprintf("%d devices", f.Ranks), ""
		}
		for _, c := range r.Machine.Cards {
			if (c.PCI == f.From || c.PCI == f.To) && c.Link != nil && (f.Way == measure.Upload || f.Way == measure.Download) {
				limit = fmt.Sprintf("%.0f%%", 100*f.Rate()/c.Link.Rate())
			}
		}
		line("%s\t%s\t%s\t%d\t%.1f\t%.2f\t%s", f.Way, from, to, f.Bytes>>10, f.Seconds*1e6, f.Rate()/1e9, limit)
	}
}

func gib(n int64) float64 { return float64(n) / (1 << 30) }

func orUnknown(text string) string {
	if strings.TrimSpace(text) == "" {
		return "unknown"
	}
	return text
}

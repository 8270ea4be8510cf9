package evaluate

import (
	"fmt"
	"slices"
	"strings"

	"roundhouse/kernels/measure"
)

// The shares below which a figure does not fit its machine.
const (
	leastOfLink  = 0.5 // of a link that a large transfer fills
	leastOfPeers = 0.7 // of the median of cards of one kind, and of nodes
	leastOfClock = 0.7 // of a working card's clock
	mostBusy     = 0.2 // of the processors, by others
	mostStolen   = 0.02
)

// Suspect names what does not fit.
func Suspect(r *Report) (all []Suspicion) {
	add := func(about, remedy, format string, args ...any) {
		all = append(all, Suspicion{about, fmt.Sprintf(format, args...), remedy})
	}
	r.ofLoad(add)
	r.ofClock(add)
	r.ofNodes(add)
	for _, c := range r.Machine.Cards {
		if c.Usable {
			r.ofCard(c, add)
		}
	}
	r.ofPeers(add)
	r.ofPairs(add)
	return all
}

type adder func(about, remedy, format string, args ...any)

func (r *Report) ofLoad(add adder) {
	if r.Machine.Cores > 0 && r.Load.Busy > mostBusy*float64(r.Machine.Cores) {
		add("machine", "end what else runs, and evaluate again", "other programs kept %.1f processors busy: every figure here is too low", r.Load.Busy)
	}
	if r.Load.Stolen > mostStolen {
		add("machine", "give this machine processors of its own (pinning, no overcommit)", "its hypervisor gave %.0f %% of the processors' time to other machines", 100*r.Load.Stolen)
	}
}

func (r *Report) ofClock(add adder) {
	c := r.Machine.Clock
	if c.Max > 0 && c.Limit < leastOfClock*c.Max {
		add("cpus", "cpupower frequency-set --max, or the BIOS' power limit", "their clock is limited to %.1f GHz of %.1f", c.Limit/1e9, c.Max/1e9)
	}
	if c.Governor == "powersave" && c.Max > 0 {
		add("cpus", "cpupower frequency-set --governor performance", "their governor is powersave")
	}
	if r.Load.Heat > 0 {
		add("cpus", "look at fans, dust and the cooler's seat", "heat slowed them down %d times meanwhile", r.Load.Heat)
	}
	if r.Machine.HugePages == "never" {
		add("machine", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled", "large pages are off: each token's pass over the weights looks up 512 times as many addresses")
	}
}

// ofNodes compares each node's own memory with the others', and near memory with far.
func (r *Report) ofNodes(add adder) {
	near := map[int]float64{} // by core
	for _, p := range r.Memory {
		if p.CPUs == p.Memory {
			near[p.CPUs] = p.Rate / float64(max(p.Threads, 1))
		}
	}
	if len(near) > 1 {
		typical := median(near)
		for _, p := range r.Memory {
			if v, ok := near[p.CPUs]; ok && p.CPUs == p.Memory && v < leastOfPeers*typical {
				add(fmt.Sprintf("node %d", p.CPUs), "look whether its memory channels are all filled, with modules of one kind", "a core moves %.1f GB/s in its own memory, elsewhere %.1f", v/1e9, typical/1e9)
			}
		}
	}
	for _, p := range r.Memory {
		if v, ok := near[p.CPUs]; ok && p.CPUs != p.Memory && p.Rate/float64(max(p.Threads, 1)) > 1.1*v {
			add(fmt.Sprintf("node %d", p.CPUs), "look at the order of nodes in the BIOS (sub-NUMA clustering)", "the memory of node %d is faster from its processors than its own", p.Memory)
		}
	}
}

func (r *Report) ofCard(c Card, add adder) {
	about := "gpu " + c.PCI
	if l := c.Link; l != nil {
		if l.Width < l.MaxWidth {
			add(about, "put it into a slot with all lanes, seat it anew, or look at the BIOS' bifurcation", "its link has %d of %d lanes", l.Width, l.MaxWidth)
		}
		worked := slices.ContainsFunc(r.Devices, func(d Device) bool { return d.Name == "xpu:"+c.PCI })
		if worked && l.Speed < l.MaxSpeed { // an idle card lowers it
			add(about, "look at the slot's generation in the BIOS, riser cards and ASPM", "its link runs at %g of %g GT/s while it works", l.Speed, l.MaxSpeed)
		}
		for _, t := range r.largest(c.PCI) {
			if t.Rate() < leastOfLink*l.Rate() {
				add(about, "look for memory of another node, an IOMMU that translates (iommu=pt), and a device that shares the switch", "%s: %.1f GB/s of the %.1f that its link carries", t.Way, t.Rate()/1e9, l.Rate()/1e9)
			}
		}
	}
	if c.Clock.Now > 0 && c.Clock.Now < leastOfClock*c.Clock.Max {
		add(about, "look at its power limit, its power cables and its fans", "its clock reached %.0f MHz of %.0f while it worked%s", c.Clock.Now/1e6, c.Clock.Max/1e6, reasons(c.Clock.Throttle))
	} else if len(c.Clock.Throttle) > 0 {
		add(about, "look at its power limit, its power cables and its fans", "its driver held it back%s", reasons(c.Clock.Throttle))
	}
}

func reasons(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return " (" + strings.Join(list, ", ") + ")"
}

// largest is a card's transfers with the host, of the largest size each way.
func (r *Report) largest(pci string) (all []measure.Transfer) {
	for _, way := range []string{measure.Upload, measure.Download} {
		var most measure.Transfer
		for _, t := range r.Transfers {
			if t.Way == way && (t.From == pci || t.To == pci) && t.Bytes > most.Bytes {
				most = t
			}
		}
		if most.Bytes > 0 {
			all = append(all, most)
		}
	}
	return all
}

// ofPeers compares cards of one kind with each other.
func (r *Report) ofPeers(add adder) {
	kinds := map[string]map[string]float64{} // product, device → copy
	for _, d := range r.Devices {
		for _, c := range r.Machine.Cards {
			if d.Name == "xpu:"+c.PCI {
				if kinds[c.Product] == nil {
					kinds[c.Product] = map[string]float64{}
				}
				kinds[c.Product][d.Name] = d.Copy
			}
		}
	}
	for _, d := range r.Devices {
		for product, peers := range kinds {
			if v, ok := peers[d.Name]; ok && len(peers) > 1 && v < leastOfPeers*median(peers) {
				add("gpu "+strings.TrimPrefix(d.Name, "xpu:"), "exchange it with another slot: what stays with the card is the card's", "it copies %.0f GB/s, other cards of its kind (%s) %.0f", v/1e9, product, median(peers)/1e9)
			}
		}
	}
}

// ofPairs looks for cards between which the driver's own way is slower than the host's.
func (r *Report) ofPairs(add adder) {
	for _, t := range r.Transfers {
		if t.Way != measure.Direct {
			continue
		}
		i := slices.IndexFunc(r.Transfers, func(h measure.Transfer) bool { return h.Way == measure.ByHost && h.From == t.From && h.To == t.To })
		if i >= 0 && t.Rate() < 0.9*r.Transfers[i].Rate() {
			add("gpu "+t.From, "look at access control services (ACS) of the switch and the IOMMU; models over these cards should go through the host", "the driver's own way to %s carries %.1f GB/s, the one through the host %.1f", t.To, t.Rate()/1e9, r.Transfers[i].Rate()/1e9)
		}
	}
}

func median[K comparable](of map[K]float64) float64 {
	var all []float64
	for _, v := range of {
		all = append(all, v)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

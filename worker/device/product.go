package device

import (
	"slices"
	"strings"
)

// product is a kind of card.
type product struct {
	name   string
	memory []int64 // that it is sold with, in GiB
}

// products are Intel's GPUs that models run on, by PCI device id.
var products = map[string]product{
	"0x56a0": {"Arc A770", []int64{16, 8}}, "0x56a1": {"Arc A750", []int64{8}}, "0x56a2": {"Arc A580", []int64{8}},
	"0x56a5": {"Arc A380", []int64{6}}, "0x56a6": {"Arc A310", []int64{4}},
	"0x56c0": {"Data Center GPU Flex 170", []int64{16}}, "0x56c1": {"Data Center GPU Flex 140", []int64{6}},
	"0xe20b": {"Arc B580", []int64{12}}, "0xe20c": {"Arc B570", []int64{10}},
	"0xe211": {"Arc Pro B60", []int64{24}}, "0xe212": {"Arc Pro B50", []int64{16}},
	"0xe222": {"Arc Pro B65", []int64{32}}, "0xe223": {"Arc Pro B70", []int64{32}},
	"0x0bd5": {"Data Center GPU Max 1550", []int64{128}}, "0x0bd6": {"Data Center GPU Max 1550", []int64{128}},
	"0x0bd9": {"Data Center GPU Max 1100", []int64{48}}, "0x0bda": {"Data Center GPU Max 1100", []int64{48}},
	"0x0bdb": {"Data Center GPU Max 1100", []int64{48}},
}

// card is what kind of card a GPU is.
func (g GPU) card() (p product, known bool) {
	if g.Vendor != "intel" {
		return product{}, false
	}
	p, known = products[g.Device]
	return p, known
}

// bytes is the memory of a card. Upstream drivers do not tell it in sysfs; of a card that
// is sold with several sizes, the window through which the processor looks at it tells
// which. 0: unknown.
func (p product) bytes(window int64) int64 {
	if len(p.memory) == 1 {
		return p.memory[0] << 30
	}
	if slices.Contains(p.memory, window>>30) {
		return window
	}
	return 0
}

// Product is what a GPU is called: its name where it is known, otherwise its vendor
// and its PCI device id.
func Product(g GPU) string {
	if p, known := g.card(); known {
		return p.name
	}
	return strings.TrimSpace(g.Vendor + " " + g.Device)
}

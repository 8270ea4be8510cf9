package device

import (
	"path/filepath"
	"strings"
)

// products are the names of Intel's GPUs that models run on, by PCI device id.
var products = map[string]string{
	"0x56a0": "Arc A770", "0x56a1": "Arc A750", "0x56a2": "Arc A580", "0x56a5": "Arc A380", "0x56a6": "Arc A310",
	"0x56c0": "Data Center GPU Flex 170", "0x56c1": "Data Center GPU Flex 140",
	"0xe20b": "Arc B580", "0xe20c": "Arc B570", "0xe211": "Arc Pro B60", "0xe212": "Arc Pro B50",
	"0x0bd5": "Data Center GPU Max 1550", "0x0bd6": "Data Center GPU Max 1550",
	"0x0bd9": "Data Center GPU Max 1100", "0x0bda": "Data Center GPU Max 1100", "0x0bdb": "Data Center GPU Max 1100",
}

// Product is what a GPU is called: its name where it is known, otherwise its vendor
// and its PCI device id.
func Product(sysfs string, g GPU) string {
	id := strings.ToLower(read(filepath.Join(sysfs, "bus/pci/devices", g.PCI, "device")))
	if name := products[id]; name != "" && g.Vendor == "intel" {
		return name
	}
	return strings.TrimSpace(g.Vendor + " " + id)
}

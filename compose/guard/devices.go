package guard

import (
	"fmt"
	"path"
	"regexp"
	"slices"

	"github.com/docker/docker/api/types/container"

	"roundhouse/configs"
	"roundhouse/worker/device"
)

// cards are this machine's GPUs.
type cards []device.GPU

var byPath = regexp.MustCompile(`^/dev/dri/by-path/pci-([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])-(?:card|render)$`)

// at finds the card that a node belongs to, by its PCI address.
func (c cards) at(node string) (device.GPU, bool) {
	m := byPath.FindStringSubmatch(node)
	i := slices.IndexFunc(c, func(g device.GPU) bool {
		return m != nil && g.PCI == m[1] || node != "" && (node == g.Render || node == g.Card)
	})
	if i < 0 {
		return device.GPU{}, false
	}
	return c[i], true
}

// devices lets the worker's own GPUs pass, at their own paths.
func (w worker) devices(asked []container.DeviceMapping, cards cards) error {
	for _, d := range asked {
		if path.Clean(d.PathOnHost) != d.PathOnHost || d.PathInContainer != d.PathOnHost {
			return fmt.Errorf("Devices: %q is not given under its own name (%q)", d.PathOnHost, d.PathInContainer)
		}
		if d.CgroupPermissions != "rw" {
			return fmt.Errorf("Devices: %s with %q, and not \"rw\"", d.PathOnHost, d.CgroupPermissions)
		}
		if slices.Contains(w.among.DevicesExtra, d.PathOnHost) {
			if err := configs.CheckDevice(d.PathOnHost); err != nil {
				return fmt.Errorf("Devices: %w", err)
			}
			continue
		}
		card, known := cards.at(d.PathOnHost)
		switch {
		case !known:
			return fmt.Errorf("Devices: %q is no GPU's node", d.PathOnHost)
		case w.pool.Devices == "cpu":
			return fmt.Errorf("Devices: %s: the pool %q has devices = \"cpu\"", d.PathOnHost, w.pool.Name)
		case len(w.itself.GPUs) > 0 && !slices.Contains(w.itself.GPUs, card.PCI):
			return fmt.Errorf("Devices: %s is of the GPU %s, which is not %s's", d.PathOnHost, card.PCI, w.id)
		case len(w.itself.GPUs) == 0 && !card.Usable():
			return fmt.Errorf("Devices: %s is of the GPU %s, which no worker can use", d.PathOnHost, card.PCI)
		}
	}
	return nil
}

// requests lets those GPUs of NVIDIA's pass that the worker may have.
func (w worker) requests(asked []container.DeviceRequest, cards cards) error {
	for _, d := range asked {
		if d.Driver != "nvidia" || d.Count != 0 || len(d.Options) > 0 || len(d.DeviceIDs) == 0 {
			return fmt.Errorf("DeviceRequests: not GPUs of NVIDIA's by their names")
		}
		if len(d.Capabilities) != 1 || !slices.Equal(d.Capabilities[0], []string{"gpu"}) {
			return fmt.Errorf("DeviceRequests: Capabilities other than gpu")
		}
		for _, id := range d.DeviceIDs {
			i := slices.IndexFunc(cards, func(g device.GPU) bool { return g.PCI == id && g.Usable() })
			if auto := len(w.itself.GPUs) == 0 && w.pool.Devices != "cpu" && i >= 0; !auto && !slices.Contains(w.itself.GPUs, id) {
				return fmt.Errorf("DeviceRequests: the GPU %s is not %s's", id, w.id)
			}
		}
	}
	return nil
}

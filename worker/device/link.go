package device

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Link is the way between a card and its processor: one PCI Express link.
type Link struct {
	PCI      string  `json:"pci"`       // of the port that says it
	Speed    float64 `json:"speed"`     // of a lane, in GT/s, now; an idle card may lower it
	MaxSpeed float64 `json:"max_speed"` // that both ends could
	Width    int     `json:"width"`     // lanes in use
	MaxWidth int     `json:"max_width"` // lanes that the card has
}

// Rate is the bytes a second that a link carries one way; 0 where it is unknown.
func (l Link) Rate() float64 { return laneRate(l.Speed) * float64(l.Width) }

// MaxRate is Rate at full speed and width.
func (l Link) MaxRate() float64 { return laneRate(l.MaxSpeed) * float64(l.MaxWidth) }

// laneRate is the bytes a second of one lane: two of ten bits are lost to the code of the
// first two generations, two of 130 to that of the later ones.
func laneRate(speed float64) float64 {
	if speed <= 5 {
		return speed * 1e9 * 8 / 10 / 8
	}
	return speed * 1e9 * 128 / 130 / 8
}

// LinkOf reads the link of a card. Intel's cards carry a switch of their own: what the
// device itself tells is a made-up link inside the card (2.5 GT/s by one lane), and the
// switch's upper port tells the real one.
func LinkOf(sysfs, pci string) (l Link, known bool) {
	path, err := filepath.EvalSymlinks(filepath.Join(sysfs, "bus/pci/devices", pci))
	if err != nil {
		return Link{}, false
	}
	if read(filepath.Join(path, "vendor")) == "0x8086" {
		lower := filepath.Dir(path)
		upper := filepath.Dir(lower)
		if intelPort(lower) && intelPort(upper) && isPort(filepath.Dir(upper)) {
			path = upper
		}
	}
	l = Link{PCI: filepath.Base(path), Speed: speedOf(path, "current"), MaxSpeed: speedOf(path, "max"), Width: widthOf(path, "current"), MaxWidth: widthOf(path, "max")}
	return l, l.Rate() > 0 && l.MaxRate() > 0
}

func isPort(path string) bool { return strings.HasPrefix(read(filepath.Join(path, "class")), "0x0604") }

func intelPort(path string) bool {
	return isPort(path) && read(filepath.Join(path, "vendor")) == "0x8086"
}

// speedOf reads "16.0 GT/s PCIe".
func speedOf(path, which string) float64 {
	text, _, _ := strings.Cut(read(filepath.Join(path, which+"_link_speed")), " ")
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 {
		return 0
	}
	return v
}

func widthOf(path, which string) int {
	n, err := strconv.Atoi(read(filepath.Join(path, which+"_link_width")))
	if err != nil || n < 0 || n > 64 { // 255: the port does not know
		return 0
	}
	return n
}

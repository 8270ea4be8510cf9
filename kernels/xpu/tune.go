package xpu

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"roundhouse/kernels/measure"
	"roundhouse/kernels/xpu/cl"
)

// knob is one figure of a tuning, what it may be, and the kernels that show it.
type knob struct {
	name  string
	may   []int
	at    func(t *Tuning) *int
	shown measure.Kind
}

// knobs are the figures that a device's tuning may be changed in. Tiles stay within the
// table's, which have room in the registers.
func knobs(t Tuning) []knob {
	all := []knob{
		{"Split", []int{1, 2, 4, 8}, func(t *Tuning) *int { return &t.Split }, measure.OneRow},
		{"Queries", []int{4, 8}, func(t *Tuning) *int { return &t.Queries }, measure.Attention},
	}
	if t.Lanes > 0 {
		var tiles []int
		for n := 1; n <= t.Tiles; n *= 2 {
			tiles = append(tiles, n)
		}
		return append(all,
			knob{"Tiles", tiles, func(t *Tuning) *int { return &t.Tiles }, measure.ManyRows},
			knob{"Columns", []int{1, 2}, func(t *Tuning) *int { return &t.Columns }, measure.ManyRows})
	}
	return append(all, knob{"Rows", []int{2, 4, 8}, func(t *Tuning) *int { return &t.Rows }, measure.ManyRows})
}

// Tune looks for the fastest tuning of a device, one figure after the other, from the
// table's on. score measures kernels of a kind with a tuning: less is better. report is
// told each score.
func Tune(d cl.Device, score func(t Tuning, shown measure.Kind) (float64, error), report func(name string, value int, score float64)) (Tuning, error) {
	best := tuningOf(d)
	for _, k := range knobs(best) {
		least := 0.0
		for _, v := range k.may {
			t := best
			*k.at(&t) = v
			s, err := score(t, k.shown)
			if err != nil {
				return best, fmt.Errorf("%s %d: %w", k.name, v, err)
			}
			report(k.name, v, s)
			if least == 0 || s < least {
				least = s
				*k.at(&best) = v
			}
		}
	}
	return best, nil
}

// tuned is a stored tuning. It counts for the device and driver that it was found on.
type tuned struct {
	Device, Driver string
	Tuning         Tuning
}

func tunedPath(folder string, d cl.Device) string {
	sum := sha256.Sum256([]byte(d.Name + "\x00" + d.Driver))
	return filepath.Join(folder, "xpu-tuning-"+hex.EncodeToString(sum[:8])+".json")
}

// StoreTuning keeps a tuning for the next start and returns where.
func StoreTuning(folder string, d cl.Device, t Tuning) (string, error) {
	text, err := json.MarshalIndent(tuned{d.Name, d.Driver, t}, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	path := tunedPath(folder, d)
	return path, replace(path, append(text, '\n'))
}

// tuningFor is the stored tuning of a device, or the table's where there is none that
// the kernels can have.
func tuningFor(folder string, d cl.Device) Tuning {
	table := tuningOf(d)
	if folder == "" {
		return table
	}
	text, err := os.ReadFile(tunedPath(folder, d))
	if err != nil {
		return table
	}
	var s tuned
	if json.Unmarshal(text, &s) != nil || s.Device != d.Name || s.Driver != d.Driver {
		return table
	}
	t := table
	for _, k := range knobs(table) {
		v := *k.at(&s.Tuning)
		for _, may := range k.may {
			if v == may {
				*k.at(&t) = v
			}
		}
	}
	return t
}

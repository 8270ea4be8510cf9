package device

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// first reads the first of some files that holds a number; NaN where none does.
// Patterns are those of filepath.Glob.
func first(patterns ...string) float64 {
	for _, p := range patterns {
		paths, _ := filepath.Glob(p)
		slices.Sort(paths)
		for _, path := range paths {
			if v, err := strconv.ParseFloat(read(path), 64); err == nil {
				return v
			}
		}
	}
	return math.NaN()
}

// frequency is the clock that a GPU really runs at, in hertz. The first file is xe's,
// the others are i915's, newer and older.
func frequency(gpu string) float64 {
	return 1e6 * first(
		filepath.Join(gpu, "tile*/gt0/freq0/act_freq"),
		filepath.Join(gpu, "drm/card*/gt/gt0/rps_act_freq_mhz"),
		filepath.Join(gpu, "drm/card*/gt_act_freq_mhz"))
}

// hwmon fills in what the sensors of a GPU say. Where sensors have labels, "pkg" is
// the chip, "vram" its memory and "card" all of it. i915 has a folder for each tile
// besides ("i915_gt0"), which counts a part of the same energy.
func hwmon(gpu string, r *Reading) {
	dirs, _ := filepath.Glob(filepath.Join(gpu, "hwmon/hwmon*"))
	for _, dir := range dirs {
		if strings.Contains(read(filepath.Join(dir, "name")), "_gt") {
			continue
		}
		temperatures(dir, r)
		if v := first(filepath.Join(dir, "power*_average"), filepath.Join(dir, "power*_input")); !math.IsNaN(v) {
			r.Power = v / 1e6
		}
		if v := energy(dir); !math.IsNaN(v) {
			r.Energy = v / 1e6
		}
	}
}

// temperatures takes the memory's from its hottest channel where there is no sensor for
// all of it.
func temperatures(dir string, r *Reading) {
	channels := math.NaN()
	for _, path := range inputs(dir, "temp") {
		v := first(path) / 1000
		switch label := labelOf(path); {
		case math.IsNaN(v):
		case label == "vram":
			r.MemoryTemperature = v
		case strings.HasPrefix(label, "vram"):
			if math.IsNaN(channels) || v > channels {
				channels = v
			}
		case label == "pkg", label == "" && math.IsNaN(r.Temperature):
			r.Temperature = v
		}
	}
	if math.IsNaN(r.MemoryTemperature) {
		r.MemoryTemperature = channels
	}
}

// energy is the counter of the whole card, otherwise that of its chip. Cards that do not
// count one of them show it as 0.
func energy(dir string) float64 {
	best, rank := math.NaN(), -1
	for _, path := range inputs(dir, "energy") {
		v := first(path)
		if math.IsNaN(v) {
			continue
		}
		is := map[string]int{"card": 4, "": 3, "pkg": 2}[labelOf(path)]
		if v > 0 {
			is += 5
		}
		if is > rank {
			best, rank = v, is
		}
	}
	return best
}

// inputs are the sensors of one kind ("temp") in a folder.
func inputs(dir, kind string) []string {
	paths, _ := filepath.Glob(filepath.Join(dir, kind+"*_input"))
	slices.Sort(paths)
	return paths
}

// labelOf is what a sensor is called; empty: it has no name.
func labelOf(input string) string {
	return read(strings.TrimSuffix(input, "_input") + "_label")
}

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

// idle is how many seconds a GPU has slept since it was started.
func idle(gpu string) float64 {
	return 1e-3 * first(
		filepath.Join(gpu, "tile*/gt0/gtidle/idle_residency_ms"),
		filepath.Join(gpu, "drm/card*/gt/gt0/rc6_residency_ms"),
		filepath.Join(gpu, "drm/card*/power/rc6_residency_ms"))
}

// hwmon fills in what the sensors of a GPU say. Where sensors have labels, "pkg" is
// the chip and "vram" its memory; power and energy of the card come before those of
// the chip.
func hwmon(gpu string, r *Reading) {
	dirs, _ := filepath.Glob(filepath.Join(gpu, "hwmon/hwmon*"))
	for _, dir := range dirs {
		temperatures, _ := filepath.Glob(filepath.Join(dir, "temp*_input"))
		slices.Sort(temperatures)
		for _, path := range temperatures {
			v := first(path) / 1000
			switch label := read(strings.TrimSuffix(path, "_input") + "_label"); {
			case math.IsNaN(v):
			case label == "vram":
				r.MemoryTemperature = v
			case label == "pkg", label == "" && math.IsNaN(r.Temperature):
				r.Temperature = v
			}
		}
		if v := first(filepath.Join(dir, "power*_average"), filepath.Join(dir, "power*_input")); !math.IsNaN(v) {
			r.Power = v / 1e6
		}
		if v := first(filepath.Join(dir, "energy*_input")); !math.IsNaN(v) {
			r.Energy = v / 1e6
		}
	}
}

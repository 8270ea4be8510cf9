package device

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Clock is how fast something runs beside how fast it could.
type Clock struct {
	Now      float64  `json:"now"` // hertz; 0: unknown
	Max      float64  `json:"max"`
	Throttle []string `json:"throttle,omitempty"` // the driver's reasons for going slower: "pl1", "thermal"
}

// ClockOf reads the clock of a GPU. It means something while the GPU works.
func ClockOf(sysfs, pci string) Clock {
	gpu := filepath.Join(sysfs, "bus/pci/devices", pci)
	c := Clock{Now: orZero(frequency(gpu)), Max: orZero(1e6 * first(
		filepath.Join(gpu, "tile*/gt0/freq0/rp0_freq"),
		filepath.Join(gpu, "tile*/gt0/freq0/max_freq"),
		filepath.Join(gpu, "drm/card*/gt/gt0/rps_RP0_freq_mhz"),
		filepath.Join(gpu, "drm/card*/gt_RP0_freq_mhz")))}
	for _, pattern := range []string{"tile*/gt0/freq0/throttle/reason_*", "drm/card*/gt/gt0/throttle_reason_*"} {
		paths, _ := filepath.Glob(filepath.Join(gpu, pattern))
		for _, path := range paths {
			_, reason, _ := strings.Cut(filepath.Base(path), "reason_")
			if reason != "status" && read(path) == "1" {
				c.Throttle = append(c.Throttle, reason)
			}
		}
	}
	return c
}

func orZero(v float64) float64 {
	if v != v {
		return 0
	}
	return v
}

// CPUClock is what the processors' clocks are set to.
type CPUClock struct {
	Governor  string  `json:"governor,omitempty"` // empty: this machine does not say, as most virtual ones
	Limit     float64 `json:"limit,omitempty"`    // hertz that they may go up to
	Max       float64 `json:"max,omitempty"`      // hertz that they could
	Throttled int64   `json:"throttled"`          // how often heat has slowed one of them down since the start
}

// CPUClocks reads the clocks of some processors: the lowest limit of them all.
func CPUClocks(sysfs string, cpus []int) (c CPUClock) {
	for _, cpu := range cpus {
		dir := filepath.Join(sysfs, "devices/system/cpu/cpu"+strconv.Itoa(cpu))
		if g := read(filepath.Join(dir, "cpufreq/scaling_governor")); g != "" && (c.Governor == "" || g == "powersave") {
			c.Governor = g
		}
		limit, most := 1e3*orZero(first(filepath.Join(dir, "cpufreq/scaling_max_freq"))), 1e3*orZero(first(filepath.Join(dir, "cpufreq/cpuinfo_max_freq")))
		if limit > 0 && (c.Limit == 0 || limit < c.Limit) {
			c.Limit = limit
		}
		c.Max = max(c.Max, most)
		c.Throttled += number(read(filepath.Join(dir, "thermal_throttle/core_throttle_count")))
	}
	return c
}

// HugePages is the kernel's rule for large pages: "always", "madvise" or "never"; empty:
// it does not say.
func HugePages(sysfs string) string {
	text, err := os.ReadFile(filepath.Join(sysfs, "kernel/mm/transparent_hugepage/enabled"))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), "[")
	chosen, _, _ := strings.Cut(rest, "]")
	return chosen
}

package device

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Holder is a process that has a GPU open.
type Holder struct {
	PID   int
	Bytes int64 // of the GPU's own memory
}

// Holders returns who has an Intel GPU open and how much of its memory each
// holds, as the kernel tells in /proc/PID/fdinfo. One device that a process
// has open several times counts once for each client of the driver. What this
// user may not read is not seen; complete is then false.
func Holders(proc, pci string) (list []Holder, complete bool) {
	complete = true
	dirs, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil || len(dirs) == 0 {
		return nil, false
	}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		names, err := entries(filepath.Join(dir, "fdinfo"))
		if err != nil {
			complete = false
			continue
		}
		clients, open, bytes := []string{}, false, int64(0)
		for _, name := range names {
			text := read(filepath.Join(dir, "fdinfo", name))
			if !strings.Contains(text, "drm-pdev:") {
				continue
			}
			fields := drmFields(text)
			if fields["drm-pdev"] != pci || slices.Contains(clients, fields["drm-client-id"]) {
				continue
			}
			clients, open = append(clients, fields["drm-client-id"]), true
			bytes += vram(fields)
		}
		if open {
			list = append(list, Holder{PID: pid, Bytes: bytes})
		}
	}
	return list, complete
}

// drmFields reads "key: value" lines.
func drmFields(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			out[key] = strings.TrimSpace(value)
		}
	}
	return out
}

// vram sums the regions of a device's own memory: "drm-resident-vram0: 12 KiB",
// or the total where the driver tells nothing closer.
func vram(fields map[string]string) int64 {
	for _, kind := range []string{"drm-resident-", "drm-memory-", "drm-total-"} {
		sum, found := int64(0), false
		for key, value := range fields {
			region, ok := strings.CutPrefix(key, kind)
			if !ok || !strings.HasPrefix(region, "vram") && !strings.HasPrefix(region, "local") {
				continue
			}
			sum, found = sum+amount(value), true
		}
		if found {
			return sum
		}
	}
	return 0
}

// amount reads "12 KiB".
func amount(text string) int64 {
	value, unit, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0
	}
	switch strings.TrimSpace(unit) {
	case "KiB":
		return n << 10
	case "MiB":
		return n << 20
	case "GiB":
		return n << 30
	}
	return n
}

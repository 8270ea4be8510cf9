package device

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Holder is a process that has a GPU open.
type Holder struct {
	PID   int
	Bytes int64 // of the GPU's own memory; -1: the kernel does not tell, as i915's before 6.8
}

// Holders returns who has an Intel GPU open and how much of its memory each
// holds, as the kernel tells in /proc/PID/fdinfo. What a client of the driver holds counts
// once, however often it is open, also where a process has handed it on to others. Where
// this user may not look, or the kernel does not tell what is held, complete is false.
func Holders(proc, pci string) (list []Holder, complete bool) {
	complete = true
	seen := map[string]bool{}
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
		open, told, bytes := false, true, int64(0)
		for _, name := range names {
			text := read(filepath.Join(dir, "fdinfo", name))
			if !strings.Contains(text, "drm-pdev:") {
				continue
			}
			fields := drmFields(text)
			if fields["drm-pdev"] != pci {
				continue
			}
			held, ok := vram(fields)
			open, told = true, told && ok
			if client := fields["drm-client-id"]; !seen[client] {
				seen[client] = true
				bytes += held
			}
		}
		if !told {
			bytes, complete = -1, false
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

// vram sums the regions of a device's own memory ("drm-resident-vram0: 12 KiB"), all
// of its tiles; told is false where the driver counts no memory at all.
func vram(fields map[string]string) (bytes int64, told bool) {
	for _, kind := range []string{"drm-resident-", "drm-memory-", "drm-total-"} {
		found := false
		for key, value := range fields {
			region, ok := strings.CutPrefix(key, kind)
			if !ok || strings.HasPrefix(region, "cycles-") {
				continue
			}
			told = true
			if strings.HasPrefix(region, "vram") || strings.HasPrefix(region, "local") {
				bytes, found = bytes+amount(value), true
			}
		}
		if found {
			return bytes, true
		}
	}
	return 0, told
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

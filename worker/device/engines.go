package device

import (
	"path/filepath"
	"strconv"
	"strings"
)

// engineTime is how much one kind of engine of a GPU has worked for one client of
// the driver.
type engineTime struct {
	busy  float64 // nanoseconds, or cycles of total
	total float64 // cycles; 0: busy is in nanoseconds
	count float64 // engines of the kind
}

// engineKey names a client of the driver and a kind of engine.
type engineKey struct{ client, kind string }

// engineTimes reads /proc/PID/fdinfo for one GPU: i915 counts nanoseconds
// (drm-engine-compute), xe cycles (drm-cycles-ccs of drm-total-cycles-ccs).
func engineTimes(proc, pci string) map[engineKey]engineTime {
	out := map[engineKey]engineTime{}
	paths, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "fdinfo", "*"))
	for _, path := range paths {
		text := read(path)
		if !strings.Contains(text, "drm-pdev:") {
			continue
		}
		fields := drmFields(text)
		if fields["drm-pdev"] != pci {
			continue
		}
		for key, value := range fields {
			if kind, ok := strings.CutPrefix(key, "drm-cycles-"); ok {
				out[engineKey{fields["drm-client-id"], kind}] = engineTime{count64(value), count64(fields["drm-total-cycles-"+kind]), engineCount(fields, kind)}
			} else if kind, ok := strings.CutPrefix(key, "drm-engine-"); ok && !strings.HasPrefix(kind, "capacity-") {
				out[engineKey{fields["drm-client-id"], kind}] = engineTime{count64(value), 0, engineCount(fields, kind)}
			}
		}
	}
	return out
}

// engineCount is how many engines of a kind there are: one unless the driver says.
func engineCount(fields map[string]string, kind string) float64 {
	return max(1, count64(fields["drm-engine-capacity-"+kind]))
}

// count64 reads the number at the begin of "12345 ns".
func count64(text string) float64 {
	number, _, _ := strings.Cut(text, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0
	}
	return float64(n)
}

// busiest is the share of some seconds in which the busiest kind of engine worked
// for all clients that both readings know; ok is false where there is none.
func busiest(before, after map[engineKey]engineTime, seconds float64) (share float64, ok bool) {
	kinds := map[string]float64{}
	for key, b := range after {
		a, known := before[key]
		if !known || b.busy < a.busy || b.total < a.total {
			continue
		}
		whole := seconds * 1e9
		if b.total > 0 {
			whole = b.total - a.total
		}
		if whole > 0 {
			kinds[key.kind] += (b.busy - a.busy) / whole / b.count
			ok = true
		}
	}
	for _, v := range kinds {
		share = max(share, v)
	}
	return min(share, 1), ok
}

package device

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Quota is how many processors' worth of time the control groups of this
// process leave it, and 0 where they set no limit. proc and sysfs are /proc and
// /sys.
func Quota(proc, sysfs string) float64 {
	least := 0.0
	for _, g := range groups(proc, sysfs, "cpu") {
		limit := limitV2
		if g.old {
			limit = limitV1
		}
		if q := limit(g.dir); q > 0 && (least == 0 || q < least) {
			least = q
		}
	}
	return least
}

// limitV2 reads "200000 100000", or "max 100000".
func limitV2(dir string) float64 {
	fields := strings.Fields(read(filepath.Join(dir, "cpu.max")))
	if len(fields) != 2 {
		return 0
	}
	return share(fields[0], fields[1])
}

func limitV1(dir string) float64 {
	return share(read(filepath.Join(dir, "cpu.cfs_quota_us")), read(filepath.Join(dir, "cpu.cfs_period_us")))
}

// share is quota by period; "max" and -1 are no limit.
func share(quota, period string) float64 {
	q, err := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err != nil || err2 != nil || q <= 0 || p <= 0 {
		return 0
	}
	return q / p
}

// Threads is how many threads should compute on so many processors under a
// quota: whole ones, since a thread that is stopped for the rest of a period
// holds up all others.
func Threads(processors int, quota float64) int {
	if quota > 0 {
		processors = min(processors, int(quota))
	}
	return max(processors, 1)
}

// Here is Quota of this process.
func Here() float64 { return Quota("/proc", "/sys") }

// NodesOfCPUs is the memory node of each processor of a list; 0 for one that no
// node has.
func NodesOfCPUs(nodes []Node, cpus []int) []int {
	at := map[int]int{}
	for _, n := range nodes {
		for _, c := range n.CPUs {
			at[c] = n.ID
		}
	}
	out := make([]int, len(cpus))
	for i, c := range cpus {
		out[i] = at[c]
	}
	return out
}

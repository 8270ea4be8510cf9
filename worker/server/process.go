package server

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is what dashboards show of the worker's own process.
type process struct {
	cpu      float64 // seconds
	started  float64 // seconds since 1970
	resident float64 // bytes
	virtual  float64
	files    float64
	most     float64
}

// ticks is how many of the kernel's clock ticks are a second, on every Linux that
// Go runs on.
const ticks = 100

// readProcess asks the kernel. What it does not tell is 0.
func readProcess() process {
	var p process
	stat, _ := os.ReadFile("/proc/self/stat")
	// The name, in brackets, may have blanks of its own.
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	field := func(n int) float64 { // as proc(5) counts them; the third is the first here
		if n-3 >= len(fields) {
			return 0
		}
		v, _ := strconv.ParseFloat(fields[n-3], 64)
		return v
	}
	p.cpu = (field(14) + field(15)) / ticks
	p.virtual, p.resident = field(23), field(24)*float64(os.Getpagesize())
	p.started = bootTime() + field(22)/ticks
	if names, err := os.ReadDir("/proc/self/fd"); err == nil {
		p.files = float64(len(names))
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		p.most = float64(limit.Cur)
	}
	return p
}

// bootTime is when the machine started, in seconds since 1970.
func bootTime() float64 {
	stat, _ := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(stat)) {
		if v, ok := strings.CutPrefix(line, "btime "); ok {
			t, _ := strconv.ParseFloat(strings.TrimSpace(v), 64)
			return t
		}
	}
	return 0
}

// process writes them under the names of Prometheus' Python client.
func (m exposition) process(p process) {
	m.Gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", nil, p.virtual)
	m.Gauge("process_resident_memory_bytes", "Resident memory size in bytes.", nil, p.resident)
	m.Gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", nil, p.started)
	m.Counter("process_cpu_seconds", "Total user and system CPU time spent in seconds.", nil, p.cpu)
	m.Gauge("process_open_fds", "Number of open file descriptors.", nil, p.files)
	m.Gauge("process_max_fds", "Maximum number of open file descriptors.", nil, p.most)
}

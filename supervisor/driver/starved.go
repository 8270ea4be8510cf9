package driver

import (
	"os"
	"strconv"
	"strings"
)

// Starved is how many processes this machine's kernel has killed for want of memory
// since it began; 0 where it does not tell.
func Starved() int64 {
	data, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
			return n
		}
	}
	return 0
}

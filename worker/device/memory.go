package device

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Room is memory that a process may still take.
type Room struct {
	Bytes int64  // 0: not known
	Limit string // what limits it
}

// Memory is the least of what the machine could give and what each control group
// of this process leaves under its limit. proc and sysfs are /proc and /sys.
func Memory(proc, sysfs string) Room {
	room := Room{}
	if kib := field(filepath.Join(proc, "meminfo"), "MemAvailable:"); kib > 0 {
		room = Room{kib << 10, "MemAvailable of the machine"}
	}
	for _, g := range groups(proc, sysfs, "memory") {
		limit, used, file, prefix := "memory.max", "memory.current", "memory.stat", ""
		if g.old {
			limit, used, prefix = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"
		}
		most, err := strconv.ParseInt(read(filepath.Join(g.dir, limit)), 10, 64)
		if err != nil || most <= 0 {
			continue // max, or no such file
		}
		taken, _ := strconv.ParseInt(read(filepath.Join(g.dir, used)), 10, 64)
		// Pages of files count as used, and are given up before anything else: after
		// a start those of the model's files fill the group.
		for _, list := range []string{"inactive_file", "active_file"} {
			taken -= max(field(filepath.Join(g.dir, file), prefix+list), 0)
		}
		if left := max(most-max(taken, 0), 1); room.Bytes == 0 || left < room.Bytes {
			room = Room{left, limit + " of the control group " + g.dir}
		}
	}
	return room
}

// MemoryHere is Memory of this process.
func MemoryHere() Room { return Memory("/proc", "/sys") }

// field is a number in a file of lines of names and numbers; -1: it is not there.
func field(name, key string) int64 {
	for line := range strings.Lines(read(name)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == key {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}

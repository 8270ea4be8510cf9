package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// limit is one resource limit of a child.
type limit struct {
	name     string
	resource int
	value    uint64
}

// parseLimit reads "nofile=1024"; -1 is no limit.
func parseLimit(text string) (limit, error) {
	name, value, _ := strings.Cut(text, "=")
	resource, known := map[string]int{
		"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA, "fsize": unix.RLIMIT_FSIZE,
		"memlock": unix.RLIMIT_MEMLOCK, "nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC, "stack": unix.RLIMIT_STACK,
	}[name]
	n, err := strconv.ParseInt(value, 10, 64)
	if !known || err != nil || n < -1 {
		return limit{}, fmt.Errorf("ulimits: %q is no limit that a process can be given", text)
	}
	l := limit{name, resource, uint64(n)}
	if n == -1 {
		l.value = unix.RLIM_INFINITY
	}
	return l, nil
}

// set puts the limit in force. What this machine does not allow is said and
// left as far as it goes.
func (l limit) set() {
	err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.value, Max: l.value})
	var now unix.Rlimit
	if err == nil || unix.Getrlimit(l.resource, &now) != nil {
		return
	}
	now.Cur = min(l.value, now.Max)
	_ = unix.Setrlimit(l.resource, &now) // the most that may be had; the line below says so
	fmt.Fprintf(os.Stderr, "cannot set the limit %s to %d: %v; it is %d\n", l.name, l.value, err, now.Cur)
}

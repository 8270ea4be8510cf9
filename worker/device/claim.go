package device

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Claim takes a GPU for this process alone: a lock on its render node that ends with the
// process. Where another holds it, the error says which process, as far as /proc tells.
func Claim(node, pci, proc string) (io.Closer, error) {
	f, err := os.Open(node)
	if err != nil {
		return nil, fmt.Errorf("cannot lock %s: %w", node, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return f, nil
	}
	f.Close()
	who, list := "another worker", []string{}
	holders, _ := Holders(proc, pci)
	for _, h := range holders {
		if h.PID != os.Getpid() {
			list = append(list, fmt.Sprint(h.PID))
		}
	}
	if len(list) > 0 {
		who += " (process " + strings.Join(list, " or ") + ")"
	}
	return nil, fmt.Errorf("%s computes on %s already, and a worker takes a whole GPU: give this one another, or stop that one", who, pci)
}

package device

import (
	"path"
	"path/filepath"
	"strings"
)

// cgroup is a control group that holds this process.
type cgroup struct {
	dir string
	old bool // of version 1
}

// groups are the control groups of this process that may limit what a controller
// hands out, of both versions, each followed by those above it. A container may
// see its own group as the root, whatever it is called outside, so that some of
// the folders may not be there.
func groups(proc, sysfs, controller string) []cgroup {
	var list []cgroup
	for line := range strings.Lines(read(filepath.Join(proc, "self/cgroup"))) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		root, old := filepath.Join(sysfs, "fs/cgroup"), parts[1] != ""
		if old {
			if !strings.Contains(","+parts[1]+",", ","+controller+",") {
				continue
			}
			root = filepath.Join(root, parts[1])
		}
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			list = append(list, cgroup{filepath.Join(root, group), old})
			if group == "/" {
				break
			}
		}
	}
	return list
}

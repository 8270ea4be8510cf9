package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"roundhouse/configs"
	"roundhouse/configs/workerid"
)

// own tells which workers differ from their pool, and how; and of pools of containers
// what opens them further than others, what bounds them, and which nodes are missing.
func (d *doctor) own() {
	for _, p := range d.cfg.Redacted().Pools {
		for _, w := range p.Workers {
			if text := ownOf(w); text != "" {
				d.note("note", "plan", "", "%s has of its own: %s", workerid.Of(p.Name, w.Name), text)
			}
		}
		if text := confinementOf(p.Container); text != "" {
			d.note("note", "pool "+p.Name, "", "its containers have %s", text)
		}
		for _, node := range p.Container.DevicesExtra {
			if _, err := os.Stat(filepath.Join(d.root, node)); err != nil {
				d.note("fail", "pool "+p.Name, "load the driver that makes it, or take it out of devices_extra", "devices_extra: %v", err)
			}
		}
	}
}

// ownOf is what a worker has beside its pool's.
func ownOf(w configs.Worker) string {
	var out []string
	for _, name := range sortedNames(w.Environment) {
		out = append(out, name+"="+w.Environment[name])
	}
	if len(w.Args) > 0 {
		out = append(out, strings.Join(w.Args, " "))
	}
	for _, v := range w.Volumes {
		out = append(out, "volume "+v)
	}
	return printable(strings.Join(out, ", "))
}

// confinementOf is what a pool's containers have that others have not.
func confinementOf(c configs.Container) string {
	out := slices.Concat(prefixed("capability ", c.CapAdd), prefixed("", c.SecurityOpt), prefixed("device ", c.DevicesExtra))
	if c.PidsLimit > 0 {
		out = append(out, fmt.Sprintf("at most %d processes", c.PidsLimit))
	}
	if c.Memory > 0 {
		out = append(out, fmt.Sprintf("at most %s of memory", c.Memory))
	}
	return strings.Join(out, ", ")
}

func prefixed(prefix string, list []string) []string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = prefix + text
	}
	return out
}

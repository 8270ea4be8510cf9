package importer

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"roundhouse/configs"
)

// confinement is what opens a service's containers further, and what bounds them, as
// far as a pool has it.
type confinement struct {
	capAdd, securityOpt, devices, extraHosts []string
	pids, memory                             string
}

// confine takes over what a pool may have of a service, and notes what it may not.
func (p *plan) confine(s *service, one *pool) error {
	var lost []string
	keep := func(into *[]string, text string, check func(string) error) {
		if check(text) != nil {
			lost = append(lost, text)
		} else if !slices.Contains(*into, text) {
			*into = append(*into, text)
		}
	}
	c := &one.confinement
	for _, name := range s.Confined.CapAdd {
		keep(&c.capAdd, strings.TrimPrefix(strings.ToUpper(name), "CAP_"), configs.CheckCapability)
	}
	for _, option := range s.Confined.SecurityOpt {
		kind, value, ok := strings.Cut(strings.Replace(option, ":", "=", 1), "=")
		if kind == "no-new-privileges" && value != "false" {
			ok = false
		}
		if ok {
			kind += "=" + value
		}
		keep(&c.securityOpt, kind, configs.CheckSecurity)
	}
	gpus := false
	for i := range s.Devices {
		source, _, _ := strings.Cut(s.Devices[i].Value, ":")
		switch {
		case strings.HasPrefix(source, "/dev/dri"):
			gpus = true // each worker's own, by the plan
		case s.Devices[i].Value == source || s.Devices[i].Value == source+":"+source:
			keep(&c.devices, source, configs.CheckDevice)
		default:
			lost = append(lost, s.Devices[i].Value)
		}
	}
	for _, line := range s.Confined.ExtraHosts {
		keep(&c.extraHosts, strings.Replace(line, "=", ":", 1), configs.CheckHost)
	}
	if s.Confined.PidsLimit > 0 {
		c.pids = fmt.Sprint(s.Confined.PidsLimit)
	}
	if s.Confined.MemLimit != "" {
		var err error
		if c.memory, err = composeSize(s.Confined.MemLimit); err != nil {
			return fmt.Errorf("mem_limit: %w", err)
		}
	}
	if s.Privileged || gpus {
		p.noteOn(s.name, "privileged and /dev/dri are gone: each worker gets the render node of its own GPU and nothing else.")
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		p.noteOn(s.name, "not carried over, because it would open the host to a worker: %s.", strings.Join(slices.Compact(lost), ", "))
	}
	return nil
}

func (c confinement) write(w *writer) {
	w.list("cap_add", c.capAdd)
	w.list("security_opt", c.securityOpt)
	w.list("devices_extra", c.devices)
	if c.pids != "" {
		w.line("pids_limit = %s", c.pids)
	}
	w.text("memory", c.memory)
	w.list("extra_hosts", c.extraHosts)
}

// hosts is a map of addresses by name, or a list of "name:address".
type hosts []string

func (h *hosts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return (*files)(h).UnmarshalYAML(n)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		*h = append(*h, n.Content[i].Value+":"+n.Content[i+1].Value)
	}
	return nil
}

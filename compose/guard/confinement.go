package guard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"roundhouse/configs"
)

// lets holds what opens a container further to what the configuration names, and that
// to what no configuration goes beyond.
func (w worker) lets(h *container.HostConfig) error {
	for i, name := range h.CapAdd {
		bare := strings.TrimPrefix(name, "CAP_")
		if err := configs.CheckCapability(bare); err != nil {
			return fmt.Errorf("CapAdd: %w", err)
		}
		if !slices.Contains(w.among.CapAdd, bare) {
			return fmt.Errorf("CapAdd: %s is not the configuration's", name)
		}
		h.CapAdd[i] = "CAP_" + bare // the engine's own spelling
	}
	for _, line := range h.ExtraHosts {
		if !slices.Contains(w.among.ExtraHosts, line) {
			return fmt.Errorf("ExtraHosts: %q is not the configuration's", line)
		}
	}
	return nil
}

// confines holds a container to all that bounds it by the configuration: what is left
// out is refused as well as what is more.
func (w worker) confines(h *container.HostConfig) error {
	for _, option := range h.SecurityOpt {
		if err := configs.CheckSecurity(option); err != nil {
			return fmt.Errorf("SecurityOpt: %w", err)
		}
	}
	if want := w.among.SecurityOpt; !slices.Equal(slices.Sorted(slices.Values(h.SecurityOpt)), slices.Sorted(slices.Values(want))) {
		return fmt.Errorf("SecurityOpt: %q are not the configuration's %q", h.SecurityOpt, want)
	}
	var pids int64
	if h.PidsLimit != nil {
		pids = *h.PidsLimit
	}
	if pids != w.among.PidsLimit {
		return fmt.Errorf("PidsLimit: %d is not the configuration's pids_limit, %d", pids, w.among.PidsLimit)
	}
	if pids == 0 {
		h.PidsLimit = nil // 0 and -1 are an engine's words for no limit
	}
	if limit := int64(w.among.Memory); h.Memory != limit || h.MemorySwap != limit {
		return fmt.Errorf("Memory: %d, with swap %d, is not the configuration's memory, %d", h.Memory, h.MemorySwap, limit)
	}
	return nil
}

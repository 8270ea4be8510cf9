package docker

import (
	"context"
	"slices"
	"time"

	"github.com/docker/docker/api/types/system"
	"golang.org/x/sys/unix"

	"roundhouse/supervisor/moby"
)

// Powers is what an engine can do for its containers.
type Powers struct {
	// Rootless says that the engine is an ordinary user's. The host's network is then
	// that of its own namespace, which no door reaches, and its containers are in
	// none of this machine's groups.
	Rootless bool
	// Confines says that CPUs and memory nodes hold for its containers; Measures, that
	// their memory can be told from its own. An ordinary user's engine needs control
	// groups of version 2 for both, and a session that hands them to it.
	Confines, Measures bool
	// Here says that its kernel is this machine's own.
	Here bool
}

// full is taken for granted where an engine does not say: a guard may keep it from us.
var full = Powers{Confines: true, Measures: true}

// Ask asks the engine at a host what it can do.
func Ask(ctx context.Context, host moby.Host) (Powers, error) {
	e, err := moby.Connect(host)
	if err != nil {
		return full, err
	}
	defer e.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return ask(ctx, e)
}

// informer is an engine that tells of itself.
type informer interface {
	Info(ctx context.Context) (system.Info, error)
}

func ask(ctx context.Context, e informer) (Powers, error) {
	info, err := e.Info(ctx)
	if err != nil {
		return full, err
	}
	groups := info.CgroupDriver != "none"
	return Powers{
		Rootless: slices.Contains(info.SecurityOptions, "name=rootless"),
		Confines: groups && (info.CPUSet || info.CgroupDriver == ""),
		Measures: groups,
		Here:     info.KernelVersion != "" && info.KernelVersion == kernel(),
	}, nil
}

// kernel is the release of this machine's.
func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

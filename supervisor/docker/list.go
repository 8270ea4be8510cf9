package docker

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/moby"
)

// List returns the newest container of every worker, and the containers that
// are taken over for workers that have none of their own yet.
func (d *Driver) List(ctx context.Context) ([]driver.Instance, error) {
	out, err := d.list(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = err != nil
	return out, err
}

func (d *Driver) list(ctx context.Context) ([]driver.Instance, error) {
	if err := d.agree(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	kills := driver.Starved() // before it is asked who runs
	list, err := d.ours(ctx, "")
	if err != nil {
		return nil, err
	}
	newest, ended := map[string]driver.Instance{}, map[string]bool{}
	for _, c := range list {
		i, err := d.instanceOf(ctx, c, kills)
		if cerrdefs.IsNotFound(err) {
			continue // removed since it was listed
		}
		if err != nil {
			return nil, err
		}
		if old, ok := newest[i.ID]; !ok || i.Generation > old.Generation {
			newest[i.ID] = i
		}
		if !i.Running {
			ended[c.ID] = true
		}
	}
	if err := d.confirm(ctx, ended); err != nil {
		return nil, err
	}
	d.forget(list)
	if err := d.addTakenOver(ctx, newest); err != nil {
		return nil, err
	}
	out := make([]driver.Instance, 0, len(newest))
	for _, i := range newest {
		out = append(out, i)
	}
	return out, nil
}

func (d *Driver) instanceOf(ctx context.Context, c container.Summary, kills int64) (driver.Instance, error) {
	full, err := d.engine.ContainerInspect(ctx, c.ID)
	if err != nil {
		return driver.Instance{}, err
	}
	generation, err := strconv.ParseUint(c.Labels[moby.LabelGeneration], 10, 64)
	if err != nil {
		return driver.Instance{}, fmt.Errorf("the container %s: label %s: %w", name(c.Names), moby.LabelGeneration, err)
	}
	i := driver.Instance{
		ID: c.Labels[moby.LabelWorker], Generation: generation, Hash: c.Labels[moby.LabelHash], Container: short(c.ID),
		Image: cmp.Or(c.Labels[moby.LabelImage], c.Image), URL: c.Labels[moby.LabelURL],
	}
	if full.ContainerJSONBase != nil && full.State != nil {
		if full.State.Running {
			d.deaths.Runs(full.ID, kills)
		} else {
			full.State.OOMKilled = d.deaths.Starved(ctx, d.engine, full, d.kills())
		}
	}
	describe(&i, full)
	if full.HostConfig != nil {
		i.Place.CPUs = full.HostConfig.CpusetCpus
	}
	if i.URL == "" && i.Running {
		i.URL = publishedURL(full, "127.0.0.1")
	}
	if i.Running {
		i.Memory = d.memory(ctx, c.ID)
	}
	return i, nil
}

// kills counts what this machine's kernel has killed for want of memory; nil where the
// containers have another.
func (d *Driver) kills() func() int64 {
	if d.host.URL != "" && !strings.HasPrefix(d.host.URL, "unix:") || !d.can().Here {
		return nil
	}
	return driver.Starved
}

// describe adds what the engine says of a container's process.
func describe(i *driver.Instance, c container.InspectResponse) {
	if c.ContainerJSONBase == nil || c.State == nil {
		return
	}
	i.Running, i.PID, i.OOM = c.State.Running && !c.State.Paused, c.State.Pid, c.State.OOMKilled
	if t, err := time.Parse(time.RFC3339Nano, c.State.StartedAt); err == nil {
		i.Began = t
	}
	if i.Running {
		return
	}
	i.PID, i.Released = 0, true
	i.Killed = c.State.ExitCode == moby.Killed && !c.State.OOMKilled
	switch {
	case c.State.Paused:
		i.Running, i.Released = true, false // it holds all that it held
	case c.State.OOMKilled:
		i.Ended = fmt.Sprintf("exit status %d (out of memory)", c.State.ExitCode)
	case c.State.Error != "":
		i.Ended = fmt.Sprintf("exit status %d: %s", c.State.ExitCode, c.State.Error)
	case c.State.ExitCode > 128:
		i.Ended = fmt.Sprintf("exit status %d (signal %d)", c.State.ExitCode, c.State.ExitCode-128)
	default:
		i.Ended = fmt.Sprintf("exit status %d", c.State.ExitCode)
	}
}

func short(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}

// addTakenOver adds the containers that run already and stand for a worker. They
// count as what is configured, so that it takes a turn to replace them.
func (d *Driver) addTakenOver(ctx context.Context, have map[string]driver.Instance) error {
	d.mu.Lock()
	specs := make([]driver.Spec, 0, len(d.takeovers))
	for _, s := range d.takeovers {
		specs = append(specs, s)
	}
	d.mu.Unlock()
	for _, spec := range specs {
		if _, ok := have[spec.ID()]; ok {
			continue
		}
		c, err := d.engine.ContainerInspect(ctx, spec.Takeover)
		if cerrdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if c.Config != nil && c.Config.Labels[moby.LabelInstance] != "" {
			continue
		}
		i := driver.Instance{ID: spec.ID(), Generation: 1, Hash: spec.Hash, Container: short(c.ID), TakenOver: true}
		if c.Config != nil {
			i.Image = c.Config.Image
		}
		describe(&i, c)
		if !i.Running {
			continue // it is not there to be taken over
		}
		i.Memory = d.memory(ctx, c.ID)
		if i.URL, err = d.reached(c, spec); err != nil {
			return err
		}
		have[spec.ID()] = i
	}
	return nil
}

// reached is where a container that is taken over answers: at its engine's host. It is an
// error if no door gets there, for what would be asked at that port of this machine is
// somebody else.
func (d *Driver) reached(c container.InspectResponse, spec driver.Spec) (string, error) {
	host := "127.0.0.1"
	far := d.host.Elsewhere()
	if far != "" {
		host = far
	}
	url := publishedURL(c, host)
	switch {
	case url != "":
		return url, nil
	case far == "" || c.HostConfig != nil && c.HostConfig.NetworkMode.IsHost():
		return "http://" + net.JoinHostPort(host, strconv.Itoa(spec.Port)), nil
	}
	return "", fmt.Errorf("the container %s, which is to be taken over, publishes no port at %s that is reached from here: publish one on that machine's own address", spec.Takeover, far)
}

// publishedURL is where a bridged container's port is published on a host, the lowest
// where there are several, since an engine tells them in no order; empty: none that is
// reached there.
func publishedURL(c container.InspectResponse, host string) string {
	if c.NetworkSettings == nil {
		return ""
	}
	lowest, at := 0, ""
	for port, bindings := range c.NetworkSettings.Ports {
		if port.Proto() != "tcp" || at != "" && port.Int() >= lowest {
			continue
		}
		for _, b := range bindings {
			if ip := net.ParseIP(b.HostIP); host == "127.0.0.1" || ip == nil || !ip.IsLoopback() {
				lowest, at = port.Int(), "http://"+net.JoinHostPort(host, b.HostPort)
				break
			}
		}
	}
	return at
}

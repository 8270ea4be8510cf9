package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/moby"
)

// Time limits of calls that are not waiting by nature.
const (
	callTimeout = 30 * time.Second
	pullTimeout = time.Hour
)

// Driver runs workers as containers.
type Driver struct {
	engine   engine
	instance string // the value of LabelInstance
	inside   bool   // the door stands in a container on the workers' network
	changed  driver.Hint

	version moby.Version           // of the API
	powers  atomic.Pointer[Powers] // of the engine; nil until it was asked

	cancel context.CancelFunc
	group  sync.WaitGroup

	mu        sync.Mutex
	takeovers map[string]driver.Spec // by the name of the container that is taken over
	memories  map[string]memory      // by container
	ended     map[string]bool        // containers that are known to have ended by themselves
	heard     int64                  // breaks, when containers were last listed
	failed    bool                   // they could not be, the last time

	deaths moby.Deaths
	breaks atomic.Int64 // of the stream of events
	host   moby.Host

	nodes string // where the nodes of Intel's GPUs are
}

var (
	_ driver.Driver   = (*Driver)(nil)
	_ driver.Preparer = (*Driver)(nil)
	_ driver.Resolver = (*Driver)(nil)
)

// New returns a driver for the containers of one instance. inside says that
// the door stands in a container itself and reaches workers by their names.
func New(host moby.Host, instance string, inside bool) (*Driver, error) {
	e, err := moby.Connect(host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &Driver{
		engine: e, host: host, instance: instance, inside: inside, changed: driver.NewHint(), cancel: cancel,
		takeovers: map[string]driver.Spec{}, memories: map[string]memory{}, ended: map[string]bool{}, nodes: "/dev/dri",
	}
	d.group.Go(func() { d.watch(ctx) })
	return d, nil
}

// Expect tells which containers that run already stand for a worker.
func (d *Driver) Expect(specs []driver.Spec) {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.takeovers)
	for _, s := range specs {
		if s.Takeover != "" {
			d.takeovers[s.Takeover] = s
		}
	}
}

// Close lets go of the engine and leaves all containers running.
func (d *Driver) Close() error {
	d.cancel()
	d.group.Wait()
	return d.engine.Close()
}

// Changed delivers a value when a container of ours changed, or may have.
func (d *Driver) Changed() <-chan struct{} { return d.changed }

// watch follows the engine's events until ctx ends. A stream that breaks says
// nothing about what was missed, so everything is listed again.
func (d *Driver) watch(ctx context.Context) {
	for ctx.Err() == nil {
		if d.agree(ctx) != nil {
			driver.Wait(ctx, time.Second)
			continue
		}
		began := time.Now()
		moby.Follow(ctx, d.engine, filters.NewArgs(filters.Arg("type", "container")), d.changed)
		if time.Since(began) > shortest {
			d.breaks.Add(1)
		}
		d.changed.Give()
		driver.Wait(ctx, time.Second)
	}
}

// agree settles the version of the API with the engine before anything else is asked,
// and what it can do.
func (d *Driver) agree(ctx context.Context) error {
	c, ok := d.engine.(*client.Client)
	if !ok {
		return nil
	}
	if err := d.version.Settle(ctx, c); err != nil || d.powers.Load() != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	powers, err := ask(ctx, c)
	if moby.Unreachable(err) || ctx.Err() != nil {
		return err
	}
	d.powers.Store(&powers)
	return nil
}

// can says what the engine can do.
func (d *Driver) can() Powers {
	if p := d.powers.Load(); p != nil {
		return *p
	}
	return full
}

// Prepare pulls the image if it must, and finds out whether a container could be made.
func (d *Driver) Prepare(ctx context.Context, spec driver.Spec) error {
	if err := d.agree(ctx); err != nil {
		return fmt.Errorf("%w: %w", driver.ErrAway, err)
	}
	before := d.breaks.Load()
	err := d.image(ctx, spec)
	if err == nil {
		_, err = d.plan(ctx, spec)
	}
	return d.engineError(ctx, before, err)
}

// Start pulls the image if it must and nobody has prepared for it, takes away the worker's last container,
// and starts a new one. Whatever fails, no container of this start is left.
func (d *Driver) Start(ctx context.Context, spec driver.Spec) error {
	if err := d.agree(ctx); err != nil {
		return fmt.Errorf("%w: %w", driver.ErrAway, err)
	}
	before := d.breaks.Load()
	return d.engineError(ctx, before, d.begin(ctx, spec))
}

// begin does Start's work.
func (d *Driver) begin(ctx context.Context, spec driver.Spec) error {
	if err := d.resolved(ctx, spec); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 4*callTimeout)
	defer cancel()
	if err := d.clear(ctx, spec); err != nil {
		return err
	}
	plan, err := d.plan(ctx, spec)
	if err != nil {
		return err
	}
	made, err := d.engine.ContainerCreate(ctx, plan.config, plan.host, plan.network, nil, moby.Name(spec))
	if cerrdefs.IsConflict(err) {
		return fmt.Errorf("the container name %q is taken by one that is not ours, which is left alone: rename one of the two", moby.Name(spec))
	}
	if err != nil {
		return fmt.Errorf("cannot create the container %s: %w", moby.Name(spec), err)
	}
	if err := d.engine.ContainerStart(ctx, made.ID, container.StartOptions{}); err != nil {
		clean, done := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer done()
		removed := d.engine.ContainerRemove(clean, made.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		return errors.Join(fmt.Errorf("cannot start the container %s: %w", moby.Name(spec), err), removed)
	}
	return nil
}

// Resolve returns the identity of the image that a worker's name for it stands for now.
func (d *Driver) Resolve(ctx context.Context, spec driver.Spec) (string, error) {
	if err := d.agree(ctx); err != nil {
		return "", fmt.Errorf("%w: %w", driver.ErrAway, err)
	}
	before := d.breaks.Load()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	have, err := d.engine.ImageInspect(ctx, spec.Container.Image)
	if err != nil {
		return "", d.engineError(ctx, before, fmt.Errorf("cannot look at the image %s: %w", spec.Container.Image, err))
	}
	return have.ID, nil
}

// resolved makes sure that a start finds its image. The one that its preparation has
// found is taken as it is: a name that has moved since is the next preparation's.
func (d *Driver) resolved(ctx context.Context, spec driver.Spec) error {
	if spec.Image == "" {
		return d.image(ctx, spec)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := d.engine.ImageInspect(ctx, spec.Image)
	if cerrdefs.IsNotFound(err) {
		return fmt.Errorf("%w: %s, for which %s stood, was removed from the Docker engine", driver.ErrImageGone, spec.Image, spec.Container.Image)
	}
	if err != nil {
		return fmt.Errorf("cannot look for the image %s: %w", spec.Image, err)
	}
	return nil
}

// image makes sure that the image is there, as the pull policy says.
func (d *Driver) image(ctx context.Context, spec driver.Spec) error {
	look, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	name := spec.Container.Image
	_, err := d.engine.ImageInspect(look, name)
	if err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("cannot look for the image %s: %w", name, err)
	}
	missing := err != nil
	switch {
	case missing && spec.Container.PullPolicy == "never":
		return fmt.Errorf("the image %s is not there, and pull_policy is \"never\"", name)
	case !missing && spec.Container.PullPolicy != "always":
		return nil
	}
	pull, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	options := image.PullOptions{}
	if d.host.Auth != nil {
		if options.RegistryAuth, err = d.host.Auth(pull, name); err != nil {
			return fmt.Errorf("cannot pull the image %s: %w", name, err)
		}
	}
	progress, err := d.engine.ImagePull(pull, name, options)
	if err != nil {
		return fmt.Errorf("cannot pull the image %s: %w", name, err)
	}
	defer progress.Close()
	if _, err := io.Copy(io.Discard, progress); err != nil {
		return fmt.Errorf("cannot pull the image %s: %w", name, err)
	}
	if _, err := d.engine.ImageInspect(pull, name); err != nil {
		return fmt.Errorf("the image %s was pulled and is not there: %w", name, err)
	}
	return nil
}

// clear takes away what the worker's last generation left: its container, or
// the name of one that was taken over.
func (d *Driver) clear(ctx context.Context, spec driver.Spec) error {
	list, err := d.ours(ctx, spec.ID())
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.State == container.StateRunning {
			return fmt.Errorf("the container %s of generation %s still runs", name(c.Names), c.Labels[moby.LabelGeneration])
		}
		if err := d.remove(ctx, c.ID); err != nil {
			return fmt.Errorf("cannot remove the container %s: %w", name(c.Names), err)
		}
	}
	if spec.Takeover == "" {
		return nil
	}
	old, err := d.engine.ContainerInspect(ctx, spec.Takeover)
	if cerrdefs.IsNotFound(err) || err == nil && old.State != nil && old.State.Running {
		return nil
	}
	if err != nil {
		return err
	}
	if old.Config != nil && old.Config.Labels[moby.LabelInstance] != "" {
		return nil
	}
	kept := spec.Takeover + "-before-roundhouse"
	if err := d.engine.ContainerRename(ctx, old.ID, kept); err != nil {
		return fmt.Errorf("cannot rename the container %s, which was taken over, to %s: %w", spec.Takeover, kept, err)
	}
	return nil
}

// remove takes an ended container away, with the volumes that have no name. Where
// somebody else is doing so, it waits until that is done: until then the name is taken.
func (d *Driver) remove(ctx context.Context, id string) error {
	err := d.engine.ContainerRemove(ctx, id, container.RemoveOptions{RemoveVolumes: true})
	for cerrdefs.IsConflict(err) && ctx.Err() == nil {
		driver.Wait(ctx, 50*time.Millisecond)
		if _, gone := d.engine.ContainerInspect(ctx, id); cerrdefs.IsNotFound(gone) {
			return nil
		}
		err = d.engine.ContainerRemove(ctx, id, container.RemoveOptions{RemoveVolumes: true})
	}
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// ours lists the containers of this instance, of one worker or of all.
func (d *Driver) ours(ctx context.Context, id string) ([]container.Summary, error) {
	f := filters.NewArgs(filters.Arg("label", moby.LabelInstance+"="+d.instance))
	if id != "" {
		f.Add("label", moby.LabelWorker+"="+id)
	}
	return d.engine.ContainerList(ctx, container.ListOptions{All: true, Filters: f})
}

func name(names []string) string {
	if len(names) == 0 {
		return "without a name"
	}
	return strings.TrimPrefix(names[0], "/")
}

// Stop ends a worker's container. One that is taken over loses its restart
// policy first, or the engine would bring it back.
func (d *Driver) Stop(ctx context.Context, id string, generation uint64, grace time.Duration) error {
	if err := d.agree(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, grace+2*callTimeout)
	defer cancel()
	list, err := d.ours(ctx, id)
	if err != nil {
		return err
	}
	seconds := int(grace.Seconds())
	for _, c := range list {
		if c.Labels[moby.LabelGeneration] == strconv.FormatUint(generation, 10) {
			err := d.engine.ContainerStop(ctx, c.ID, container.StopOptions{Timeout: &seconds})
			if cerrdefs.IsNotFound(err) {
				return nil
			}
			return err
		}
	}
	d.mu.Lock()
	foreign := ""
	for old, spec := range d.takeovers {
		if spec.ID() == id && len(list) == 0 {
			foreign = old
		}
	}
	d.mu.Unlock()
	if foreign == "" {
		return nil
	}
	if _, err := d.engine.ContainerUpdate(ctx, foreign, container.UpdateConfig{RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled}}); err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("cannot take the restart policy from %s: %w", foreign, err)
	}
	err = d.engine.ContainerStop(ctx, foreign, container.StopOptions{Timeout: &seconds})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// Sweep removes the containers of this instance that have ended. Those that
// were taken over are not ours and stay.
func (d *Driver) Sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 4*callTimeout)
	defer cancel()
	list, err := d.ours(ctx, "")
	if err != nil {
		return err
	}
	var errs error
	for _, c := range list {
		if c.State == container.StateRunning {
			continue
		}
		if err := d.remove(ctx, c.ID); err != nil {
			errs = errors.Join(errs, fmt.Errorf("cannot remove the container %s: %w", name(c.Names), err))
		}
	}
	return errs
}

// Logs opens a container's output.
func (d *Driver) Logs(ctx context.Context, id string, options driver.LogOptions) (io.ReadCloser, error) {
	if err := d.agree(ctx); err != nil {
		return nil, err
	}
	list, err := d.ours(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no container", id)
	}
	tail := "all"
	if options.Tail > 0 {
		tail = strconv.Itoa(options.Tail)
	}
	raw, err := d.engine.ContainerLogs(ctx, list[0].ID, container.LogsOptions{ShowStdout: true, ShowStderr: true, Follow: options.Follow, Tail: tail})
	if err != nil {
		return nil, err
	}
	return moby.Output(raw), nil
}

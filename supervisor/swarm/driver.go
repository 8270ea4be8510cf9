package swarm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/moby"
)

// Time limits of calls that are not waiting by nature.
const (
	callTimeout = 30 * time.Second
	pullTimeout = time.Hour
)

// How often tasks are looked at: Swarm tells no events of them.
const (
	taskPoll   = 500 * time.Millisecond // by who watches them all
	taskWait   = 100 * time.Millisecond // by who waits for one
	placeWait  = 3 * time.Second        // until a task without a place counts as one that gets none
	firstReach = 5 * time.Second
)

// Driver runs workers as services of a Swarm.
type Driver struct {
	engine   engine
	auth     func(ctx context.Context, image string) (string, error)
	instance string // the value of moby.LabelInstance
	inside   bool   // the door stands in a container on the workers' network
	version  moby.Version
	changed  driver.Hint

	cancel context.CancelFunc
	group  sync.WaitGroup

	deaths moby.Deaths

	mu   sync.Mutex
	urls map[string]string // where each task was reached, by its ID
}

var (
	_ driver.Driver   = (*Driver)(nil)
	_ driver.Preparer = (*Driver)(nil)
	_ driver.Resolver = (*Driver)(nil)
)

// New returns a driver for the services of one instance. inside says that the door
// stands in a container itself, on the first of a pool's networks. An engine that
// answers and is no manager is an error; one that does not answer may do so later.
func New(host moby.Host, instance string, inside bool) (*Driver, error) {
	e, err := moby.Connect(host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &Driver{engine: e, auth: host.Auth, instance: instance, inside: inside, changed: driver.NewHint(), cancel: cancel, urls: map[string]string{}}
	if err := d.ready(ctx); errors.Is(err, errNoManager) {
		cancel()
		return nil, errors.Join(fmt.Errorf("the swarm driver: %w", err), e.Close())
	}
	d.group.Go(func() { d.watch(ctx) })
	d.group.Go(func() { d.poll(ctx) })
	return d, nil
}

// ready reports whether the engine answers, as a manager.
func (d *Driver) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, firstReach)
	defer cancel()
	if err := d.agree(ctx); err != nil {
		return err
	}
	info, err := d.engine.Info(ctx)
	if err != nil {
		return err
	}
	return manager(info)
}

// agree settles the version of the API with the engine before anything else is asked.
func (d *Driver) agree(ctx context.Context) error {
	c, ok := d.engine.(*client.Client)
	if !ok {
		return nil
	}
	if err := d.version.Settle(ctx, c); err != nil {
		return fmt.Errorf("%w: %w", driver.ErrAway, err)
	}
	return nil
}

// Close lets go of the engine and leaves all services running.
func (d *Driver) Close() error {
	d.cancel()
	d.group.Wait()
	return d.engine.Close()
}

// ours lists the services of this instance with their tasks, of one worker or of all.
func (d *Driver) ours(ctx context.Context, id string) ([]service, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	f := filters.NewArgs(filters.Arg("label", moby.LabelInstance+"="+d.instance))
	if id != "" {
		f.Add("label", moby.LabelWorker+"="+id)
	}
	services, err := d.engine.ServiceList(ctx, swarm.ServiceListOptions{Filters: f})
	if err != nil || len(services) == 0 {
		return nil, err
	}
	tasks, err := d.engine.TaskList(ctx, swarm.TaskListOptions{Filters: f})
	if err != nil {
		return nil, err
	}
	nodes, err := d.engine.NodeList(ctx, swarm.NodeListOptions{})
	if err != nil {
		return nil, err
	}
	return tasksOf(services, tasks, nodes), nil
}

// List returns the newest service of every worker.
func (d *Driver) List(ctx context.Context) ([]driver.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := d.agree(ctx); err != nil {
		return nil, err
	}
	list, err := d.ours(ctx, "")
	if err != nil {
		if why := d.ready(ctx); errors.Is(why, errNoManager) {
			err = why
		}
		return nil, engineError(ctx, err)
	}
	newest := map[string]driver.Instance{}
	for _, s := range list {
		i, err := s.instance()
		if err != nil {
			return nil, err
		}
		if old, ok := newest[i.ID]; ok && i.Generation <= old.Generation {
			continue
		}
		d.local(ctx, &i, s)
		newest[i.ID] = i
	}
	d.address(newest, list)
	out := make([]driver.Instance, 0, len(newest))
	for _, i := range newest {
		out = append(out, i)
	}
	return out, nil
}

// address gives tasks that end the address that they had: Swarm forgets it as soon as
// it begins to stop one, whose streams may still run for as long as its grace.
func (d *Driver) address(newest map[string]driver.Instance, list []service) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := map[string]string{}
	for _, s := range list {
		t := s.task()
		if t == nil {
			continue
		}
		i := newest[s.Spec.Labels[moby.LabelWorker]]
		if strconv.FormatUint(i.Generation, 10) != s.Spec.Labels[moby.LabelGeneration] || !i.Running {
			continue
		}
		if i.URL == "" {
			i.URL = d.urls[t.ID]
			newest[i.ID] = i
		}
		known[t.ID] = i.URL
	}
	d.urls = known
}

// local adds what only the engine that ran a task knows of its end, where that is
// the one that is asked: who killed it.
func (d *Driver) local(ctx context.Context, i *driver.Instance, s service) {
	t := s.task()
	if i.Running || t == nil || t.Status.ContainerStatus == nil || t.Status.ContainerStatus.ExitCode != moby.Killed {
		return
	}
	c, err := d.engine.ContainerInspect(ctx, t.Status.ContainerStatus.ContainerID)
	if err != nil || c.ContainerJSONBase == nil || c.State == nil {
		return // another node's, whose engine is not asked
	}
	i.OOM = d.deaths.Starved(ctx, d.engine, c, nil)
	i.Killed = !i.OOM
	if i.OOM {
		i.Ended = fmt.Sprintf("exit status %d (out of memory)", moby.Killed)
	}
}

// Stop scales a worker's service to nothing and waits until its task has ended. The
// task has the grace that it was started with.
func (d *Driver) Stop(ctx context.Context, id string, generation uint64, grace time.Duration) error {
	if err := d.agree(ctx); err != nil {
		return err
	}
	list, err := d.ours(ctx, id)
	if err != nil {
		return engineError(ctx, err)
	}
	for _, s := range list {
		if s.Spec.Labels[moby.LabelGeneration] != strconv.FormatUint(generation, 10) {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, max(grace, s.grace())+2*callTimeout)
		defer cancel()
		if err := d.scaleToNothing(ctx, s.ID); err != nil {
			return engineError(ctx, fmt.Errorf("cannot stop the service %s: %w", s.Spec.Name, err))
		}
		return engineError(ctx, d.gone(ctx, id, s.ID))
	}
	return nil
}

// scaleToNothing has Swarm stop a service's tasks. Who else changes the service at the
// same time makes it try again.
func (d *Driver) scaleToNothing(ctx context.Context, id string) error {
	for {
		s, _, err := d.engine.ServiceInspectWithRaw(ctx, id, swarm.ServiceInspectOptions{})
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		none := uint64(0)
		s.Spec.Mode = swarm.ServiceMode{Replicated: &swarm.ReplicatedService{Replicas: &none}}
		_, err = d.engine.ServiceUpdate(ctx, id, s.Version, s.Spec, swarm.ServiceUpdateOptions{})
		if !outOfSequence(err) || ctx.Err() != nil {
			return err
		}
		driver.Wait(ctx, taskWait)
	}
}

// gone waits until no task of a service runs any more.
func (d *Driver) gone(ctx context.Context, id, service string) error {
	for {
		list, err := d.ours(ctx, id)
		if err != nil {
			return err
		}
		left := ""
		for _, s := range list {
			if live := s.live(); s.ID == service && len(live) > 0 {
				left = fmt.Sprintf("the task of %s is still %s at %s", s.Spec.Name, live[0].Status.State, s.host(live[0]))
			}
		}
		if left == "" {
			return nil
		}
		if driver.Wait(ctx, taskWait); ctx.Err() != nil {
			return errors.New(left)
		}
	}
}

// Sweep removes the services of this instance that have ended, by what List says of
// them. Swarm ends what may be left of their tasks.
func (d *Driver) Sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 4*callTimeout)
	defer cancel()
	list, err := d.ours(ctx, "")
	if err != nil {
		return engineError(ctx, err)
	}
	var errs error
	for _, s := range list {
		if i, err := s.instance(); len(s.live()) == 0 || err == nil && !i.Running {
			errs = errors.Join(errs, d.remove(ctx, s))
		}
	}
	return errs
}

func (d *Driver) remove(ctx context.Context, s service) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := d.engine.ServiceRemove(ctx, s.ID); err != nil && !cerrdefs.IsNotFound(err) {
		return fmt.Errorf("cannot remove the service %s: %w", s.Spec.Name, err)
	}
	return nil
}

// Logs opens what the newest of a worker's services has written.
func (d *Driver) Logs(ctx context.Context, id string, options driver.LogOptions) (io.ReadCloser, error) {
	if err := d.agree(ctx); err != nil {
		return nil, err
	}
	list, err := d.ours(ctx, id)
	if err != nil {
		return nil, engineError(ctx, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no service", id)
	}
	tail := "all"
	if options.Tail > 0 {
		tail = strconv.Itoa(options.Tail)
	}
	raw, err := d.engine.ServiceLogs(ctx, list[0].ID, container.LogsOptions{ShowStdout: true, ShowStderr: true, Follow: options.Follow, Tail: tail})
	if err != nil {
		return nil, engineError(ctx, err)
	}
	return moby.Output(raw), nil
}

package extend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"

	"roundhouse/plugins"
	"roundhouse/plugins/pb"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/process"
	"roundhouse/worker/device"
)

// Driver is a driver that lives in a plugin. The plugin decides nothing: it starts,
// stops and lists, and its list is the truth.
type Driver struct {
	plugin   func() *plugins.Plugin // the one that serves now; nil: none
	instance string                 // names what belongs to this supervisor
	command  []string
	changed  driver.Hint
	stop     context.CancelFunc
	stopped  chan struct{}
}

var _ driver.Driver = (*Driver)(nil)

// NewDriver makes a driver of a plugin, which may be another one after a reload. worker
// is the program that serves where a pool names no command of its own.
func NewDriver(p func() *plugins.Plugin, instance, worker string) *Driver {
	ctx, stop := context.WithCancel(context.Background())
	d := &Driver{plugin: p, instance: instance, command: []string{worker},
		changed: driver.NewHint(), stop: stop, stopped: make(chan struct{})}
	go d.watch(ctx)
	return d
}

// call asks the plugin.
func (d *Driver) call(ctx context.Context, fn func(ctx context.Context, c pb.DriverClient) error) error {
	p := d.plugin()
	if p == nil {
		return fmt.Errorf("%w: %w", driver.ErrAway, plugins.ErrNotRunning)
	}
	err := p.Call(ctx, func(ctx context.Context, conn *grpc.ClientConn) error { return fn(ctx, pb.NewDriverClient(conn)) })
	if errors.Is(err, plugins.ErrNotRunning) {
		err = fmt.Errorf("%w: %w", driver.ErrAway, err)
	}
	return err
}

// stream runs a long call of the plugin.
func (d *Driver) stream(ctx context.Context, fn func(ctx context.Context, conn *grpc.ClientConn) error) error {
	p := d.plugin()
	if p == nil {
		return plugins.ErrNotRunning
	}
	return p.Stream(ctx, fn)
}

// Start implements driver.Driver.
func (d *Driver) Start(ctx context.Context, spec driver.Spec) error {
	return d.call(ctx, func(ctx context.Context, c pb.DriverClient) error {
		_, err := c.Start(ctx, &pb.StartRequest{Spec: d.spec(spec)})
		return err
	})
}

func (d *Driver) spec(s driver.Spec) *pb.WorkerSpec {
	w := &pb.WorkerSpec{
		Instance: d.instance, Id: s.ID(), Generation: s.Generation, Hash: s.Hash,
		Image: s.Container.Image, Cpus: s.Place.CPUs, Port: int32(s.Port),
		Command: append(append([]string{}, s.Container.Entrypoint...), s.Container.Command...), Environment: map[string]string{},
	}
	for _, m := range []map[string]string{s.Engine.Environment, s.Container.Environment} {
		for k, v := range m {
			w.Environment[k] = v
		}
	}
	for _, g := range s.Place.GPUs {
		w.Gpus = append(w.Gpus, g.ID)
	}
	w.Mems = device.FormatList(s.Place.NUMA)
	if len(w.Command) == 0 {
		// Our own worker, on this machine. A driver that places workers elsewhere is
		// given a command of its own, and chooses the port itself where it is 0.
		if w.Port == 0 {
			w.Port = freePort()
		}
		w.Command = append(append([]string{}, d.command...), process.Arguments(s, int(w.Port))...)
	}
	return w
}

// freePort asks the kernel for a port that nobody has. Another may take it before the
// worker does; the worker then ends, and is started on another.
func freePort() int32 {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0
	}
	defer l.Close()
	return int32(l.Addr().(*net.TCPAddr).Port)
}

// Stop implements driver.Driver.
func (d *Driver) Stop(ctx context.Context, id string, _ uint64, grace time.Duration) error {
	return d.call(ctx, func(ctx context.Context, c pb.DriverClient) error {
		_, err := c.Stop(ctx, &pb.StopRequest{Instance: d.instance, Id: id, GraceSeconds: grace.Seconds()})
		return err
	})
}

// List implements driver.Driver.
func (d *Driver) List(ctx context.Context) (list []driver.Instance, err error) {
	err = d.call(ctx, func(ctx context.Context, c pb.DriverClient) error {
		res, err := c.Inspect(ctx, &pb.InspectRequest{Instance: d.instance})
		for _, f := range res.GetWorkers() {
			list = append(list, instanceOf(f))
		}
		return err
	})
	return list, err
}

// instanceOf is a worker as the plugin finds it. What it holds of a device is not
// measured: its end and the pool's settle time stand for it.
func instanceOf(f *pb.Found) driver.Instance {
	i := driver.Instance{
		ID: f.GetId(), Generation: f.GetGeneration(), Hash: f.GetHash(), Running: f.GetRunning(), URL: f.GetUrl(),
		Container: f.GetHandle(), Began: time.UnixMilli(f.GetStartedUnixMs()),
	}
	if !i.Running {
		i.Ended, i.Released = f.GetReason(), true
		if i.Ended == "" {
			i.Ended = "exit status " + strconv.Itoa(int(f.GetExitCode()))
		}
	}
	return i
}

// Logs implements driver.Driver.
func (d *Driver) Logs(ctx context.Context, id string, o driver.LogOptions) (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() {
		w.CloseWithError(d.stream(ctx, func(ctx context.Context, conn *grpc.ClientConn) error {
			in, err := pb.NewDriverClient(conn).Logs(ctx, &pb.LogsRequest{Instance: d.instance, Id: id, Tail: int32(o.Tail), Follow: o.Follow})
			if err != nil {
				return err
			}
			for {
				part, err := in.Recv()
				if err != nil {
					return err // io.EOF at the end
				}
				if _, err := w.Write(part.GetData()); err != nil {
					return err
				}
			}
		}))
	}()
	return r, nil
}

// Changed implements driver.Driver.
func (d *Driver) Changed() <-chan struct{} { return d.changed }

// Close implements driver.Driver. The plugin itself is its host's to end.
func (d *Driver) Close() error {
	d.stop()
	<-d.stopped
	return nil
}

// watch turns the plugin's events into hints, and begins anew when the stream ends.
func (d *Driver) watch(ctx context.Context) {
	defer close(d.stopped)
	for ctx.Err() == nil {
		d.stream(ctx, func(ctx context.Context, conn *grpc.ClientConn) error {
			in, err := pb.NewDriverClient(conn).Events(ctx, &pb.EventsRequest{Instance: d.instance})
			for err == nil {
				d.changed.Give()
				_, err = in.Recv()
			}
			return err
		})
		driver.Wait(ctx, time.Second)
	}
}

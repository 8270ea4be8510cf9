package plugins

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc"

	"roundhouse/plugins/pb"
)

// Spec says which program to run as what.
type Spec struct {
	Name   string
	Kind   string // sdk.KindPolicy and its sisters
	Path   string
	SHA256 string // hex; an empty one is an error by design
	Open   bool   // on_failure = "open": the caller goes on without it
	User   string // runs as this user; empty: as its parent
}

// Options bound what a plugin may take. The zero value is ready for use.
type Options struct {
	Log          *slog.Logger  // default: slog.Default
	Deadline     time.Duration // of a call that has none sooner; default 1 s
	StartTimeout time.Duration // from exec to handshake; default 10 s
	Concurrency  int           // calls at once; default 64
	Memory       int64         // resident bytes at which it is killed; default 512 MiB
	TempDir      string        // where its socket's folder is made; default: the system's

	// Failures in a row that open the breaker, and for how long. Default 5, 5 s.
	BreakerFailures int
	BreakerOpen     time.Duration
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&o.Deadline, time.Second)
	def(&o.StartTimeout, 10*time.Second)
	def(&o.BreakerOpen, 5*time.Second)
	if o.Concurrency <= 0 {
		o.Concurrency = 64
	}
	if o.Memory <= 0 {
		o.Memory = 512 << 20
	}
	if o.BreakerFailures <= 0 {
		o.BreakerFailures = 5
	}
	return o
}

// The errors of a call that never reached the plugin.
var (
	// ErrNotRunning is returned when the plugin's process is not there (yet, or again).
	ErrNotRunning = errors.New("the plugin is not running")
	// ErrBreakerOpen is returned while the breaker is open.
	ErrBreakerOpen = errors.New("the plugin failed several times in a row and is left alone for a while")
	// ErrBusy is returned when no place among the calls at once came free in time.
	ErrBusy = errors.New("the plugin has as many calls as it may have at once")
)

// Plugin is one configured program, running or about to run again.
type Plugin struct {
	spec  Spec
	opts  Options
	log   *slog.Logger
	seats chan struct{}
	stats recorder

	stop    context.CancelFunc
	stopped chan struct{}
	kick    chan struct{} // a call has seen the process fail: look now

	mu      sync.Mutex
	running *process        // nil while there is none
	ready   chan struct{}   // closed while running is set
	lastErr error           // why there is none
	wants   *pb.FilterWants // of a filter, as it last said
	breaker breaker
	starts  int
}

// Start begins to run a plugin and keeps it running until Close. It returns at
// once; Ready waits for the first handshake.
func Start(spec Spec, o Options) *Plugin {
	o = o.withDefaults()
	ctx, stop := context.WithCancel(context.Background())
	p := &Plugin{
		spec: spec, opts: o, stop: stop,
		log:     o.Log.With("plugin", spec.Name),
		seats:   make(chan struct{}, o.Concurrency),
		stopped: make(chan struct{}),
		kick:    make(chan struct{}, 1),
		ready:   make(chan struct{}),
		breaker: breaker{limit: o.BreakerFailures, open: o.BreakerOpen},
	}
	go p.run(ctx)
	return p
}

// Close ends the process and waits for everything of this plugin to be gone.
func (p *Plugin) Close() {
	p.stop()
	<-p.stopped
}

// Wants is what a filter wants to see, as it said when it last started; nil before
// that, and for other kinds.
func (p *Plugin) Wants() *pb.FilterWants {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wants
}

// Spec is what the plugin was started with.
func (p *Plugin) Spec() Spec { return p.spec }

// Ready waits until the plugin has shaken hands, or ctx ends. The error then says
// why the last start failed, if one has.
func (p *Plugin) Ready(ctx context.Context) error {
	for {
		p.mu.Lock()
		running, ready, lastErr := p.running, p.ready, p.lastErr
		p.mu.Unlock()
		if running != nil {
			return nil
		}
		select {
		case <-ready:
		case <-p.stopped:
			return ErrNotRunning
		case <-ctx.Done():
			if lastErr != nil {
				return fmt.Errorf("plugin %s: %w", p.spec.Name, lastErr)
			}
			return fmt.Errorf("plugin %s: %w", p.spec.Name, ctx.Err())
		}
	}
}

// run is the plugin's goroutine: start, watch, start again after a pause that
// doubles with every start that fails soon.
func (p *Plugin) run(ctx context.Context) {
	defer close(p.stopped)
	// The kernel ends the plugin when the thread that started it ends (Pdeathsig), so
	// this goroutine keeps its thread for as long as it has a process.
	runtime.LockOSThread()
	const least, most = 200 * time.Millisecond, 30 * time.Second
	pause := least
	for ctx.Err() == nil {
		began := time.Now()
		err := p.serveOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > time.Minute {
			pause = least
		}
		p.log.Warn("plugin ended; it is started again", "reason", err, "pause", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, most)
	}
}

// serveOnce runs one process from its start to its end.
func (p *Plugin) serveOnce(ctx context.Context) error {
	p.mu.Lock()
	p.starts++
	p.mu.Unlock()
	proc, err := startProcess(ctx, p.spec, p.opts, p.log)
	if err != nil {
		p.mu.Lock()
		p.lastErr = err
		p.mu.Unlock()
		return err
	}
	defer proc.kill()

	p.mu.Lock()
	p.running, p.lastErr = proc, nil
	p.wants = proc.about.GetFilter()
	p.breaker.reset()
	close(p.ready)
	p.mu.Unlock()
	p.log.Info("plugin runs", "pid", proc.pid(), "protocol", proc.version)

	err = proc.watch(ctx, p.kick)

	p.mu.Lock()
	p.running, p.lastErr = nil, err
	p.ready = make(chan struct{})
	p.mu.Unlock()
	return err
}

// Call runs one call within the plugin's bounds. fn gets the connection for the
// generated client and a context that ends at the call's deadline.
func (p *Plugin) Call(ctx context.Context, fn func(ctx context.Context, conn *grpc.ClientConn) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.opts.Deadline)
	defer cancel()
	began := time.Now()
	err := p.call(ctx, fn)
	p.stats.add(time.Since(began), err)
	return err
}

func (p *Plugin) call(ctx context.Context, fn func(ctx context.Context, conn *grpc.ClientConn) error) error {
	p.mu.Lock()
	proc := p.running
	allowed := proc != nil && p.breaker.allow(time.Now())
	p.mu.Unlock()
	switch {
	case proc == nil:
		return ErrNotRunning
	case !allowed:
		return ErrBreakerOpen
	}
	select {
	case p.seats <- struct{}{}:
		defer func() { <-p.seats }()
	case <-ctx.Done():
		p.settle(false)
		return ErrBusy
	}
	err := fn(ctx, proc.conn)
	p.settle(err == nil || clientLeft(ctx))
	if err != nil && proc.exited() {
		select {
		case p.kick <- struct{}{}:
		default:
		}
	}
	return err
}

// Stream runs one long call: it has no deadline but ctx's, takes no seat and does not
// move the breaker. It ends with the plugin's process at the latest.
func (p *Plugin) Stream(ctx context.Context, fn func(ctx context.Context, conn *grpc.ClientConn) error) error {
	p.mu.Lock()
	proc := p.running
	p.mu.Unlock()
	if proc == nil {
		return ErrNotRunning
	}
	return fn(ctx, proc.conn)
}

// settle tells the breaker how a call went.
func (p *Plugin) settle(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.breaker.settle(ok, time.Now())
}

// clientLeft reports whether a call ended because its caller gave up, which is no
// fault of the plugin's.
func clientLeft(ctx context.Context) bool { return errors.Is(context.Cause(ctx), context.Canceled) }

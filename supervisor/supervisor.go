package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/control/keyfile"
	"roundhouse/configs"
	"roundhouse/live"
	"roundhouse/supervisor/docker"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/health"
	"roundhouse/supervisor/journal"
	"roundhouse/supervisor/moby"
	"roundhouse/supervisor/process"
	"roundhouse/supervisor/swarm"
	"roundhouse/web"
)

// Options are what a supervisor is made of. Paths are absolute.
type Options struct {
	Config *configs.Config
	// Load reads the configuration anew, for reload. Nil: there is no reload.
	Load    func() (*configs.Config, error)
	Program string   // this program: the door and the shim are started from it
	Worker  string   // roundhouse-worker
	Env     []string // what workers get of the environment
	DoorEnv []string // and what the door gets, which faces the network
	Version string
	File    string   // the configuration's; an upgrade has the new program check it
	Doors   []string // private sockets of doors that others run; none: a door of our own
	Sysfs   string   // where the machine is read from: "/sys"
	Proc    string   // and its processes: "/proc"
	Docker  moby.Host
	// OpenDriver opens what driver = "plugin:<name>" stands for. Nil: nothing.
	OpenDriver func(name, instance string) (driver.Driver, error)
	// Changing is told a configuration that passed every check, before it is put in
	// force; an error refuses it. Nil: nothing is.
	Changing func(*configs.Config) error
	// Plugins is what the supervisor's own plugins say of themselves, ready for JSON.
	// Nil: there are none.
	Plugins func() []any
	// Notify is told every event; it must not wait. Nil: nobody is.
	Notify func(journal.Event)
	// DownAfter is how long a worker may leave its health unanswered, and HungAfter
	// how long it may have requests and make no progress. Zero: 30 s and 2 min.
	DownAfter, HungAfter time.Duration
	// DoorAfter is how long a door that others run may leave every question
	// unanswered before nothing waits for it. Zero: 45 s, longer than its lease.
	DoorAfter time.Duration
	// Proven is how long a new configuration must have been ready on one worker
	// before the next gets it. Zero: 10 s.
	Proven time.Duration
	// LeaseWait is how long a door may obey another supervisor before this one
	// ends. Zero: a minute, which is longer than any lease.
	LeaseWait time.Duration
	Inside    bool // the door stands in a container on the workers' network
	// Instance is what this supervisor's containers are labelled with. Empty: a name
	// made of the state folder and the machine.
	Instance string
	// EndWithDoors leaves the workers running at the end as long as a door answers, and
	// otherwise ends them and removes what they were, whatever Shutdown is told.
	EndWithDoors bool
	Log          *slog.Logger
}

// Supervisor runs the workers of a configuration.
type Supervisor struct {
	options  Options
	log      *slog.Logger
	children *process.Manager
	client   *http.Client // to workers
	admin    net.Listener

	reloading reloading

	inbox    chan func() // what the loop is asked to do or told
	ctx      context.Context
	cancel   context.CancelFunc
	group    sync.WaitGroup
	set      atomic.Pointer[control.WorkerSet]
	health   *health.Watch
	profiler profiler
	keys     *keyfile.Store // made at run time
	first    chan struct{}  // closed once something can be served
	end      chan error     // ends Run

	// All below belongs to the loop.
	clock         clock
	began         time.Time // when the loop did
	serving       bool      // first is closed
	ending        bool
	plan          *deployment
	memory        memory
	gate          gate               // the doors
	fleet         fleet              // the workers
	runners       map[string]*runner // the drivers, by their name in the configuration
	preparing     preparing
	trafficCounts map[string]*trafficCount // by pool
	events        events
	counters      counters
	hub           *live.Hub // what those see who look on
}

// New opens the state folder and takes all that must be there before anything
// starts: the journal's lock, the admin address, and the door's.
func New(o Options) (*Supervisor, error) {
	dir := o.Config.StateDir
	for into, usual := range map[*time.Duration]time.Duration{&o.LeaseWait: time.Minute, &o.DownAfter: downAfter, &o.HungAfter: hungAfter, &o.Proven: 10 * time.Second, &o.DoorAfter: 45 * time.Second} {
		if *into == 0 {
			*into = usual
		}
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("state_dir: %w", err)
	}
	remembered, err := openMemory(dir, o.Log)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second}}
	s := &Supervisor{
		options: o, log: o.Log, memory: remembered,
		client: client, profiler: profiler{client: client},
		keys:  keyfile.Open(dir),
		inbox: make(chan func(), 64), first: make(chan struct{}), end: make(chan error, 1),
		gate: gate{doors: map[string]*door{}}, fleet: newFleet(), runners: map[string]*runner{}, preparing: newPreparing(), trafficCounts: map[string]*trafficCount{},
		events: events{log: o.Log, notify: o.Notify, watchers: map[chan journal.Event]bool{}}, counters: newCounters(),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.health = health.New(s.vitals())
	s.hub = live.New(live.Options{Source: lookout{s}, Version: o.Version, Assets: web.Digest()})
	if err := s.open(dir); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// open does New's work, which close undoes.
func (s *Supervisor) open(dir string) error {
	if s.memory.journal.SetAside != "" {
		s.events.note("", "", "journal", "was damaged and is set aside as "+s.memory.journal.SetAside+"; it is rebuilt from what runs")
	}
	if err := s.keys.Fault(); err != nil {
		s.events.note("", "", "key", err.Error())
	}
	if err := s.memory.recall(); err != nil {
		return err
	}
	s.clock = s.memory.clock
	var err error
	if s.children, err = process.NewManager(dir, []string{s.options.Program, "supervise", "shim"}); err != nil {
		return err
	}
	if err := s.redraw(s.options.Config, s.memory.intent); err != nil {
		return err
	}
	if err := s.plan.placed(); err != nil && s.memory.fresh {
		return err // nothing has run here before, and nothing could
	}
	if s.admin, err = control.ListenAdmin(s.options.Config.Admin); err != nil {
		return err
	}
	if err := s.openDrivers(); err != nil {
		return err
	}
	if len(s.options.Doors) > 0 {
		for i, socket := range s.options.Doors {
			s.meet(newDoor(fmt.Sprintf("given-%d", i+1), socket, false))
		}
		return nil
	}
	return s.openDoor()
}

// openDrivers opens the drivers that the configuration names.
func (s *Supervisor) openDrivers() error {
	for _, p := range s.plan.config.Pools {
		if s.runners[p.Driver] != nil || p.Driver == "static" {
			continue
		}
		d, err := s.openDriver(p.Driver)
		if err != nil {
			return fmt.Errorf("pool %q: %w", p.Name, err)
		}
		s.runners[p.Driver] = newRunner(p.Driver, d)
	}
	s.expect()
	return nil
}

func (s *Supervisor) openDriver(name string) (driver.Driver, error) {
	plugin, isPlugin := strings.CutPrefix(name, "plugin:")
	switch {
	case name == "process":
		return process.NewDriver(s.children, s.options.Worker, s.options.Env), nil
	case name == "docker":
		return docker.New(s.options.Docker, s.instance(), s.options.Inside)
	case name == "swarm":
		return swarm.New(s.options.Docker, s.instance(), s.options.Inside)
	case isPlugin && s.options.OpenDriver != nil:
		return s.options.OpenDriver(plugin, s.instance())
	}
	return nil, fmt.Errorf("this version has no driver %q", name)
}

// instance names what belongs to one state folder of one machine, unless the
// options name it; it is the same after the journal is lost.
func (s *Supervisor) instance() string {
	if s.options.Instance != "" {
		return s.options.Instance
	}
	machine, _ := os.ReadFile("/etc/machine-id") // absent in many containers: the folder alone then
	sum := sha256.Sum256([]byte(s.options.Config.StateDir + "\n" + string(machine)))
	return hex.EncodeToString(sum[:6])
}

// Admin is where the admin API listens.
func (s *Supervisor) Admin() net.Addr { return s.admin.Addr() }

// Door is where the door listens; empty where others run it.
func (s *Supervisor) Door() string { return s.gate.address }

// Ready is closed once the door can serve some pool.
func (s *Supervisor) Ready() <-chan struct{} { return s.first }

// Run supervises until ctx ends, and returns once all its goroutines have. It
// leaves the workers and the door running; Shutdown ends those.
func (s *Supervisor) Run(ctx context.Context) error {
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
	s.group.Go(func() {
		if err := server.Serve(s.admin); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("admin API", "error", err)
		}
	})
	s.group.Go(func() { s.health.Run(s.ctx) })
	s.group.Go(func() { s.hub.Run(s.ctx) })
	err := s.loop(ctx)
	if err != nil && !s.serving && !errors.Is(err, errFenced) && !errors.Is(err, errTurnedAway) && !errors.Is(err, ErrUpgrade) {
		s.endAll(5*time.Second, false) // nothing half-started is left
	}
	s.cancel()
	server.Close()
	s.close()
	return err
}

// close lets go of everything that New took.
func (s *Supervisor) close() {
	s.cancel()
	if s.admin != nil {
		s.admin.Close()
	}
	for _, r := range s.runners {
		if err := r.driver.Close(); err != nil {
			s.log.Warn("driver", "error", err)
		}
	}
	// A door that was told of by an asking goroutine is gone with the context.
	done := make(chan struct{})
	go func() { s.group.Wait(); close(done) }()
	for open := true; open; {
		select {
		case f := <-s.inbox:
			f()
		case <-done:
			open = false
		}
	}
	if s.children != nil {
		s.children.Close()
	}
	if s.gate.listen != nil {
		s.gate.listen.Close()
	}
	s.client.CloseIdleConnections()
	if err := s.memory.journal.Close(); err != nil {
		s.log.Warn("journal", "error", err)
	}
}

// tell gives the loop something to do; false: the supervisor has ended.
func (s *Supervisor) tell(f func()) bool {
	select {
	case s.inbox <- f:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// ask has the loop run f and waits for it.
func (s *Supervisor) ask(ctx context.Context, f func()) error {
	done := make(chan struct{})
	if !s.tell(func() { defer close(done); f() }) {
		return errors.New("the supervisor is ending")
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return errors.New("the supervisor is ending")
	}
}

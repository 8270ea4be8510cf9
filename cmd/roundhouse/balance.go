package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"roundhouse/balancer"
	"roundhouse/balancer/control"
	"roundhouse/balancer/control/keyfile"
	"roundhouse/balancer/control/phase"
	"roundhouse/balancer/lines"
	"roundhouse/configs"
	"roundhouse/configs/workerid"
	"roundhouse/kube"
	"roundhouse/supervisor"
	"roundhouse/supervisor/pods"
	"roundhouse/worker/api"
)

// balanceFlags are what `balance` takes: a file, or what a supervisor gives
// its child.
type balanceFlags struct {
	file     string
	fd       int
	socket   string
	id       string
	stateDir string
	batches  string
	usage    string
	format   string     // of the log, before the first worker set
	beside   *pickers   // nil: the door serves its own clients alone
	account  string     // the folder of the account for the cluster's API server
	times    pods.Times // of rotations of pods; zero: the usual
	cluster  *cluster
}

// balanceCommand runs a door alone.
func balanceCommand(c *console) *cobra.Command {
	var f balanceFlags
	cmd := &cobra.Command{
		Use:   "balance",
		Short: "Run the door alone, in front of workers that run elsewhere",
		Long: `Run the door alone, in front of the static workers of a configuration, or of
what a supervisor (roundhouse supervise) says over the private socket.

With a configuration it has an admin API of its own: ps, explain, drain,
undrain, reload and the list of what is in flight work against it.`,
		GroupID: groupRun,
		Args:    usage(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.balance(cmd.Context(), f) },
	}
	cmd.Flags().StringVarP(&f.file, "config", "c", "", "the configuration file")
	cmd.Flags().StringVar(&f.socket, "socket", "", "the private socket, for a supervisor; in a folder that ends in / it has the host's name")
	cmd.Flags().StringVar(&f.stateDir, "state-dir", "", "keep the worker set here; in a folder that ends in /, under the host's name")
	cmd.Flags().StringVar(&f.batches, "batches", "", "keep files and batches here (default: batches in --state-dir)")
	cmd.Flags().StringVar(&f.usage, "usage", "", "keep what keys use here (default: usage in --state-dir)")
	cmd.Flags().IntVar(&f.fd, "listener-fd", -1, "serve on this inherited listener")
	cmd.Flags().StringVar(&f.id, "id", "", "the door's id")
	cmd.Flags().StringVar(&f.format, "log-format", "", "the format of the log until a worker set says it: text or json")
	f.clusterFlag(cmd)
	for _, hidden := range []string{"listener-fd", "id", "log-format"} {
		if err := cmd.Flags().MarkHidden(hidden); err != nil {
			panic("BUG: " + err.Error())
		}
	}
	return cmd
}

// clusterFlag adds the flag of pools of pods.
func (f *balanceFlags) clusterFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.account, "kubernetes-account", "", "the folder with token, ca.crt and namespace for pools of pods (default: "+kube.Account+")")
}

// name gives several doors that are started alike, as the tasks of a Swarm's service
// are, a socket and a folder each, by the names of their hosts.
func (f *balanceFlags) name(hostname func() (string, error)) error {
	defer f.fill()
	if !strings.HasSuffix(f.socket, "/") && !strings.HasSuffix(f.stateDir, "/") {
		return nil
	}
	host, err := hostname()
	if err != nil {
		return err
	}
	if strings.HasSuffix(f.socket, "/") {
		f.socket += host + ".sock"
	}
	if strings.HasSuffix(f.stateDir, "/") {
		f.stateDir += host
	}
	return nil
}

// fill names the folders that stand in the state folder.
func (f *balanceFlags) fill() {
	if f.stateDir == "" {
		return
	}
	f.batches = cmp.Or(f.batches, filepath.Join(f.stateDir, "batches"))
	f.usage = cmp.Or(f.usage, filepath.Join(f.stateDir, "usage"))
	for _, dir := range []string{f.batches, f.usage} {
		fd, ok := strings.CutPrefix(dir, "/proc/self/fd/")
		if n, err := strconv.Atoi(fd); ok && err == nil { // a folder that it was handed open, and plugins are not
			syscall.CloseOnExec(n)
		}
	}
}

// makeFolders makes the folders that are not there.
func (f *balanceFlags) makeFolders() error {
	dirs := []string{f.stateDir, f.usage}
	if f.socket != "" {
		dirs = append(dirs, filepath.Dir(f.socket))
	}
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// balance runs a door until it is told to end: at the first signal once its
// streams have ended, at the second at once.
func (c *console) balance(ctx context.Context, f balanceFlags) error {
	if err := f.name(os.Hostname); err != nil {
		return err
	}
	o := balancer.Options{Usage: f.usage, ID: f.id, Socket: f.socket, StateDir: f.stateDir, Batches: f.batches, Build: api.Version}
	cfg, keys := &configs.Config{Log: configs.Log{Format: f.format}}, keyfile.Open("") // until the first worker set says more
	f.cluster = newCluster(f.account, f.times)
	if f.file != "" {
		var err error
		if cfg, err = c.loadStatic(f); err != nil {
			return err
		}
		if f.socket == "" { // else a supervisor has them
			keys = keyfile.Open(f.stateDir)
		}
		set := staticSet(cfg, keys)
		o.Set, o.Found = &set, f.cluster.put
	} else if f.socket == "" {
		return usageError("-c FILE is missing: which configuration? Or --socket PATH, for a supervisor")
	}
	var how *doorLog
	log := lines.New(c.err, func(dropped uint64, why string) []byte {
		var line bytes.Buffer
		logger(&line, *how.cfg.Load()).Warn("lines of the log were dropped", "lines", dropped, "error", why)
		return line.Bytes()
	})
	defer log.Close()
	how = newDoorLog(log, cfg.Log)
	o.Log, o.Logs, o.Access, o.Dropped = slog.New(how), how.follow, log, log.Dropped
	warnAdapters(o.Log, cfg)
	var err error
	if o.Listener, err = openListener(f.fd, cfg.Door.Listen); err != nil {
		return err
	}
	if err := f.makeFolders(); err != nil {
		return err
	}
	if err := keys.Fault(); err != nil {
		o.Log.Error("keys made at run time are missing", "error", err.Error())
	}
	d, err := balancer.New(o)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		paced, stop := context.WithCancel(ctx)
		defer stop()
		go balancer.PaceCollections(paced)
	}
	following, unfollow := context.WithCancel(ctx)
	defer f.cluster.wait()
	defer unfollow()
	f.cluster.start(following, d, cfg, o.Log)
	if f.file != "" && f.socket == "" {
		where, err := c.serveAdmin(d, f, cfg, keys)
		if err != nil {
			return errors.Join(err, o.Listener.Close())
		}
		fmt.Fprintf(c.out, "The door listens at http://%s; admin API at %s\n", d.Listen(), where)
	}
	if f.beside != nil {
		if err := f.beside.start(d, o, cfg); err != nil {
			return errors.Join(err, o.Listener.Close())
		}
		fmt.Fprintf(c.out, "Gateways ask at %s\n", f.beside.addresses())
		return f.beside.run(ctx, d, f.cluster.known)
	}
	return runDoor(ctx, d)
}

// warnAdapters tells which adapters of a door's own configuration nobody loads.
func warnAdapters(log *slog.Logger, cfg *configs.Config) {
	for _, p := range cfg.Pools {
		if len(p.Adapters) > 0 {
			log.Warn("adapter blocks are a supervisor's to load: roundhouse up; this door serves what workers have loaded", "pool", p.Name)
		}
	}
}

// loadStatic reads the configuration of a door that runs alone.
func (c *console) loadStatic(f balanceFlags) (*configs.Config, error) {
	cfg, err := c.load(f.file)
	if err == nil && f.beside != nil {
		err = f.beside.check(cfg)
	}
	if err == nil {
		err = f.cluster.open(cfg, f.socket != "", c.env)
	}
	return cfg, err
}

// serveAdmin opens the admin API of a door that runs alone.
func (c *console) serveAdmin(d *balancer.Door, f balanceFlags, cfg *configs.Config, keys *keyfile.Store) (where string, err error) {
	l, err := control.ListenAdmin(cfg.Admin)
	if err != nil {
		return "", err
	}
	var mu sync.Mutex
	d.ServeAdmin(l, balancer.Admin{
		Config: cfg.Admin, File: f.file, Keys: keys, Rotations: f.cluster,
		Shown: func() any {
			mu.Lock()
			defer mu.Unlock()
			return cfg.Redacted()
		},
		Changes: func() any {
			mu.Lock()
			defer mu.Unlock()
			next, err := c.loadStatic(f)
			if err != nil {
				next = nil
			} else {
				err = replaceable(cfg, next)
			}
			return supervisor.CompareFile(cfg, f.file, next, err)
		},
		Reload: func() ([]string, error) {
			mu.Lock()
			defer mu.Unlock()
			next, err := c.loadStatic(f)
			if err != nil {
				return nil, err
			}
			if err := replaceable(cfg, next); err != nil {
				return nil, err
			}
			changes := supervisor.Changes(cfg, next)
			set := staticSet(next, keys)
			if err := d.Change(func(now *control.WorkerSet) error {
				set.Version = now.Version
				keepPods(&set, now)
				keepDrains(&set, now)
				*now = set
				return nil
			}); err != nil {
				return nil, err
			}
			cfg = next
			f.cluster.follow(next)
			return changes, nil
		},
	})
	if l.Addr().Network() == "unix" {
		return cfg.Admin.Listen, nil
	}
	return "http://" + l.Addr().String(), nil
}

// keepDrains leaves the workers drained that an operator has drained: a reload says
// nothing of them.
func keepDrains(next, now *control.WorkerSet) {
	drained := map[string]control.Worker{}
	for _, p := range now.Pools {
		for _, w := range p.Workers {
			if w.State == phase.Draining {
				drained[workerid.Of(p.Name, w.Name)] = w
			}
		}
	}
	for i := range next.Pools {
		for j := range next.Pools[i].Workers {
			w := &next.Pools[i].Workers[j]
			if was, ok := drained[workerid.Of(next.Pools[i].Name, w.Name)]; ok {
				w.State, w.Reason, w.Deadline = was.State, was.Reason, was.Deadline
			}
		}
	}
}

// replaceable refuses what a running door cannot take up.
func replaceable(old, next *configs.Config) error {
	switch {
	case old.Door.Listen != next.Door.Listen:
		return errors.New("door.listen has changed; that needs a restart")
	case old.Admin != next.Admin:
		return errors.New("admin has changed; that needs a restart")
	case old.Log != next.Log:
		return errors.New("log has changed; that needs a restart")
	}
	return nil
}

func runDoor(ctx context.Context, d *balancer.Door) error {
	soft, drain := context.WithCancel(ctx)
	hard, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer drain()
	defer stop()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		select {
		case <-signals:
			drain()
		case <-hard.Done():
			return
		}
		select {
		case <-signals:
			stop()
		case <-hard.Done():
		}
	}()
	return d.Run(soft, hard)
}

// openListener takes the inherited listener, or binds the address.
func openListener(fd int, address string) (net.Listener, error) {
	if fd < 0 {
		if address == "" {
			address = ":8000"
		}
		return control.Listen("door.listen", address)
	}
	file := os.NewFile(uintptr(fd), "listener")
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("--listener-fd %d is not a listener: %w", fd, err)
	}
	return l, nil
}

// staticSet is the worker set of a configuration's static pools.
func staticSet(cfg *configs.Config, keys *keyfile.Store) control.WorkerSet {
	set := control.WorkerSet{PeerToken: control.PeerToken(cfg.Admin.Token.Reveal()), Keys: keys.Keys(cfg.Door.Keys), Keyed: keys.Asked(), Schema: 1, Version: 1, Door: cfg.Door, Log: cfg.Log, OTLP: cfg.OTLP, Routes: cfg.Routes, Plugins: cfg.Plugins}
	for _, p := range cfg.Pools {
		if p.Driver != "static" && !p.OfPods() {
			continue
		}
		pool := control.Pool{Name: p.Name, Driver: p.Driver, Policy: p.Policy, Task: p.Task, Models: p.Engine.ServedModelName, ReasoningEnd: p.ReasoningEnd, Scrape: p.Scrape}
		for _, w := range p.Workers {
			pool.Workers = append(pool.Workers, control.Worker{
				Name: w.Name, URL: w.URL, APIKey: string(w.APIKey), Generation: 1, Kind: "vllm", KVTokens: w.KVTokens, State: phase.Ready,
			})
		}
		set.Pools = append(set.Pools, pool)
	}
	return set
}

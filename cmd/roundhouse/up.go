package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"roundhouse/configs"
	"roundhouse/supervisor"
	"roundhouse/supervisor/extend"
	"roundhouse/worker/api"
)

// upFlags are what `up` and `supervise` take besides the file.
type upFlags struct {
	file        string
	listen      string
	admin       string
	stateDir    string
	keepWorkers bool

	instance     string // of supervise alone
	endWithDoors bool
}

// upCommand runs everything on this machine: the supervisor, and under it the
// door and the workers.
func upCommand(c *console) *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:     "up",
		Short:   "Run the door and the workers of a configuration",
		GroupID: groupRun,
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.supervise(cmd.Context(), f, nil)
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&f.listen, "listen", "", "listen here instead of where the file says, e.g. :8010")
	return cmd
}

func (f *upFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "config", "c", "", "the configuration file")
	cmd.Flags().StringVar(&f.admin, "admin", "", "put the admin API here instead of where the file says")
	cmd.Flags().StringVar(&f.stateDir, "state-dir", "", "keep journal, locks and logs here instead of where the file says")
	cmd.Flags().BoolVar(&f.keepWorkers, "keep-workers", false, "leave the workers running at the end; the next up adopts them")
}

// read loads the file and puts the flags over it.
func (f *upFlags) read(c *console) (*configs.Config, error) {
	if f.file == "" {
		return nil, usageError("-c FILE is missing: which configuration?")
	}
	cfg, err := c.load(f.file)
	if err != nil {
		return nil, err
	}
	for _, p := range cfg.Pools {
		if p.OfPods() {
			return nil, usageError(`%s: pool %q: driver = "kubernetes": this command starts and rotates workers of its own; run roundhouse balance or roundhouse picker, which follow pods and rotate them`, f.file, p.Name)
		}
	}
	if f.listen != "" {
		if _, _, err := net.SplitHostPort(f.listen); err != nil {
			return nil, usageError("--listen %s: %w; write :8010 or 127.0.0.1:8010", f.listen, err)
		}
		cfg.Door.Listen = f.listen
	}
	if f.admin != "" {
		cfg.Admin.Listen = f.admin
	}
	if f.stateDir != "" {
		cfg.StateDir = f.stateDir
	}
	if cfg.StateDir, err = filepath.Abs(cfg.StateDir); err != nil {
		return nil, err
	}
	if f.file, err = filepath.Abs(f.file); err != nil {
		return nil, err
	}
	return cfg, checkUsers(cfg.Plugins, os.Geteuid() == 0)
}

// checkUsers refuses users that a plugin could not become.
func checkUsers(all []configs.Plugin, root bool) error {
	for _, p := range all {
		switch {
		case p.User == "":
		case p.Kind == "filter" || p.Kind == "policy":
			return usageError("plugin %q: user = %q: the door runs filters and policies as its own user, and as root's child it is one that nobody else is; leave user out", p.Name, p.User)
		case !root:
			return usageError("plugin %q: user = %q: only root may start a program as another user", p.Name, p.User)
		}
	}
	return nil
}

// supervise runs a supervisor until it is told to end.
func (c *console) supervise(ctx context.Context, f upFlags, doors []string) error {
	c.keepToOurselves()
	cfg, err := f.read(c)
	if err != nil {
		return err
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintf(c.err, "warning: %v\n", w)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	_, outside := os.Stat("/.dockerenv")
	worker, log := filepath.Join(filepath.Dir(program), "roundhouse-worker"), logger(c.err, cfg.Log)
	ext := extend.New(worker, log)
	defer ext.Close()
	if err := ext.Apply(cfg.Plugins); err != nil {
		return err
	}
	s, err := supervisor.New(supervisor.Options{
		OpenDriver: ext.Driver, Notify: ext.Notify, Plugins: ext.Stats,
		Config: cfg, Load: func() (*configs.Config, error) { return f.read(c) },
		Changing: func(next *configs.Config) error { return ext.Apply(next.Plugins) },

		Program: program, Worker: worker,
		Env: handedOn(os.Environ(), forEngines), DoorEnv: handedOn(os.Environ(), forAll), Version: api.Version, File: f.file, Doors: doors, Sysfs: "/sys", Proc: "/proc", Docker: c.dockerHost(), Inside: outside == nil, Log: log,
		Instance: f.instance, EndWithDoors: f.endWithDoors,
	})
	if err != nil {
		return c.goBack(err)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(run) }()
	return c.await(ctx, s, cfg, f.keepWorkers, ended, cancel)
}

// await tells when all is ready and ends all when it is asked to: at the first
// signal once the streams have ended, at the second at once.
func (c *console) await(ctx context.Context, s *supervisor.Supervisor, cfg *configs.Config, keep bool, ended chan error, cancel func()) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	ready := s.Ready()
	for {
		select {
		case err := <-ended:
			if errors.Is(err, supervisor.ErrUpgrade) {
				return executeAnew()
			}
			return err
		case <-ready:
			ready = nil
			c.arrived()
			c.welcome(s, cfg)
			continue
		case <-signals:
		case <-ctx.Done():
		}
		break
	}
	fmt.Fprintln(c.err, "ending: waiting for running requests; once more to end at once")
	soft, hurry := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		<-signals
		hurry()
	}()
	err := s.Shutdown(soft, keep)
	hurry()
	cancel()
	return errors.Join(err, <-ended)
}

// welcome prints where everything is, and a line that works when pasted.
func (c *console) welcome(s *supervisor.Supervisor, cfg *configs.Config) {
	if s.Door() == "" {
		fmt.Fprintf(c.out, "Supervising; admin API at http://%s\n", s.Admin())
		return
	}
	scheme := "http"
	if cfg.Door.TLS != nil {
		scheme = "https"
	}
	base := scheme + "://" + reachable(s.Door())
	admin := "http://" + s.Admin().String()
	if s.Admin().Network() == "unix" {
		admin = cfg.Admin.Listen
	}
	fmt.Fprintf(c.out, "\nRoundhouse is ready.\n  endpoint  %s/v1\n  admin     %s\n\nTry it:\n  %s\n\n", base, admin, curlLine(base, cfg))
}

// curlLine asks the first model that is named in the configuration.
func curlLine(base string, cfg *configs.Config) string {
	model := ""
	for _, p := range cfg.Pools {
		if len(p.Engine.ServedModelName) > 0 {
			model = p.Engine.ServedModelName[0]
			break
		}
	}
	if model == "" {
		return "curl " + base + "/v1/models"
	}
	key := ""
	if len(cfg.Door.Keys) > 0 {
		key = " -H \"Authorization: Bearer $KEY\""
	}
	return fmt.Sprintf(`curl -N %s/v1/chat/completions%s -H 'Content-Type: application/json' -d '{"model":%q,"stream":true,"messages":[{"role":"user","content":"What is 27 + 15?"}]}'`, base, key, model)
}

// reachable turns an address to listen on into one to ask.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

func logger(out io.Writer, cfg configs.Log) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.Level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}

// The names that children get of the environment; * ends a name's beginning. Some of
// those that steer GPUs and engines are secret (HF_TOKEN, VLLM_API_KEY), and the door
// faces the network.
var (
	forAll = []string{"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "GOMAXPROCS", "GODEBUG", "SSL_CERT_FILE", "SSL_CERT_DIR", "LC_*", "XDG_*"}

	forEngines = append(slices.Clip(forAll), "ZE_*", "ZES_*", "SYCL_*", "UR_*", "ONEAPI_*", "OCL_*", "OPENCL_*", "POCL_*", "NEO*", "VLLM_*", "HF_*", "CUDA_*", "NVIDIA_*", "OMP_*")
)

// handedOn is what is wanted of an environment, and nothing that only the
// configuration may use.
func handedOn(environ, wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return !slices.ContainsFunc(wanted, func(w string) bool {
			beginning, any := strings.CutSuffix(w, "*")
			return name == w || any && strings.HasPrefix(name, beginning)
		})
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"roundhouse/compose/guard"
	"roundhouse/supervisor/moby"
)

// dockerGuardCommand stands between a supervisor in a container and the
// Docker engine's socket. Compose files start it; nobody types it.
func dockerGuardCommand(c *console) *cobra.Command {
	var file, listen, engine, instance string
	cmd := &cobra.Command{
		Use:    "docker-guard -c FILE --listen unix:///PATH",
		Short:  "Let pass to a Docker engine what running workers takes, nothing else",
		Hidden: true,
		Args:   usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			socket, ok := strings.CutPrefix(engine, "unix://")
			if !ok {
				return usageError("--engine %s: write unix:///PATH", engine)
			}
			path, ok := strings.CutPrefix(listen, "unix://")
			if !ok {
				return usageError("--listen %s: write unix:///PATH", listen)
			}
			log := slog.New(slog.NewTextHandler(c.err, nil))
			policy := &policyFile{load: func() (*guard.Policy, error) {
				cfg, err := c.load(file)
				if err != nil {
					return nil, err
				}
				for _, p := range cfg.Pools {
					if p.Driver == "swarm" {
						return nil, fmt.Errorf("pool %q: the guard knows containers and no services; a supervisor of a Swarm asks a manager's socket itself (compose/stack.yaml)", p.Name)
					}
				}
				return guard.PolicyOf(cfg, instance), nil
			}, file: file, log: log}
			if err := policy.read(); err != nil {
				return err
			}
			return serveGuard(cmd.Context(), path, guard.New(socket, policy.now, log), log)
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "the configuration, whose docker pools are what may run")
	cmd.Flags().StringVar(&listen, "listen", "unix:///run/roundhouse/docker.sock", "the socket for the supervisor")
	cmd.Flags().StringVar(&engine, "engine", "unix:///var/run/docker.sock", "the Docker engine's socket")
	cmd.Flags().StringVar(&instance, "instance", "roundhouse", "the value of the label "+moby.LabelInstance+" on our containers")
	if err := cmd.MarkFlagRequired("config"); err != nil {
		panic("BUG: " + err.Error())
	}
	return cmd
}

// policyFile is the policy of a configuration file, read again when the file
// has changed: a reload may name a new image.
type policyFile struct {
	load func() (*guard.Policy, error)
	file string
	log  *slog.Logger

	mu      sync.Mutex
	policy  *guard.Policy
	changed time.Time // when the file that was last read had been written
	size    int64
}

// read loads the file.
func (p *policyFile) read() error {
	info, err := os.Stat(p.file)
	if err != nil {
		return err
	}
	p.changed, p.size = info.ModTime(), info.Size()
	policy, err := p.load()
	if err != nil {
		return err
	}
	p.policy = policy
	return nil
}

// now is the policy in force. A file that cannot be read leaves the last one.
func (p *policyFile) now() *guard.Policy {
	p.mu.Lock()
	defer p.mu.Unlock()
	info, err := os.Stat(p.file)
	if err == nil && info.ModTime().Equal(p.changed) && info.Size() == p.size {
		return p.policy
	}
	if err == nil {
		err = p.read()
	}
	if err != nil {
		p.log.Warn("the configuration cannot be read; what it said before holds", "error", err)
		return p.policy
	}
	p.log.Info("the configuration was read again")
	return p.policy
}

// serveGuard serves on a unix socket that its owner and group may use, until
// it is told to end.
func serveGuard(ctx context.Context, path string, handler http.Handler, log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			return fmt.Errorf("another program answers on %s", path)
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	if err := os.Chmod(path, 0o660); err != nil {
		listener.Close()
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	log.Info("guarding", "socket", path)
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = server.Close() // streams of events and logs never end by themselves
		if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
			err = e
		}
	}
	return err
}

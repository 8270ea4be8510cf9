package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"roundhouse/balancer"
	"roundhouse/balancer/certificate"
	"roundhouse/balancer/control"
	"roundhouse/balancer/extproc"
	"roundhouse/configs"
)

// pickerFlags are what `picker` takes beside what `balance` does.
type pickerFlags struct {
	balanceFlags
	listen    []string
	health    string
	cert, key string
	endpoints int
	unwatched bool
	leave     time.Duration
}

// pickerCommand runs a door that chooses for a gateway, too.
func pickerCommand(c *console) *cobra.Command {
	var f pickerFlags
	cmd := &cobra.Command{
		Use:   "picker",
		Short: "Choose workers for a gateway of Kubernetes: an endpoint picker",
		Long: `Choose workers for a gateway of Kubernetes, as the endpoint picker of an
InferencePool: Envoy's external processing protocol with TLS or without it on one
port, and gRPC's health service beside it.

The picker is a door as balance runs one, with the same queue, policies, keys and
accounts; requests may come by both ways. A gateway's stream does not name its
pool: give each pool a port of its own (--listen chat=:9002 --listen code=:9003).`,
		GroupID: groupRun,
		Args:    usage(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runPicker(cmd.Context(), c, f) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "config", "c", "", "the configuration file")
	flags.StringVar(&f.stateDir, "state-dir", "", "keep the worker set here; in a folder that ends in /, under the host's name")
	flags.StringArrayVar(&f.listen, "listen", []string{":9002"}, "where gateways ask, [POOL=]ADDRESS; several times for several pools")
	flags.StringVar(&f.health, "health-listen", "", "answer gRPC's health service here, too")
	flags.StringVar(&f.cert, "tls-cert", "", "the certificate for gateways that speak TLS (default: one is made)")
	flags.StringVar(&f.key, "tls-key", "", "its key")
	flags.IntVar(&f.endpoints, "endpoints", 1, "how many endpoints to name, in the order of retries; many gateways take one alone")
	flags.BoolVar(&f.unwatched, "unwatched", false, "let answers pass unseen: cheaper, and no end of the picker can touch them, but accounts go by estimates")
	flags.DurationVar(&f.leave, "leave", 5*time.Second, "how long to serve on after SIGTERM, until gateways have noticed")
	f.clusterFlag(cmd)
	f.fd = -1
	return cmd
}

// runPicker runs a door with its pickers until it is told to end.
func runPicker(ctx context.Context, c *console, f pickerFlags) error {
	if f.file == "" {
		return usageError("-c FILE is missing: which configuration?")
	}
	if (f.cert == "") != (f.key == "") {
		return usageError("--tls-cert and --tls-key belong together")
	}
	if f.endpoints < 1 {
		return usageError("--endpoints: name one at least")
	}
	ps := &pickers{f: f}
	f.beside = ps
	return c.balance(ctx, f.balanceFlags)
}

// pickers are the servers that gateways ask.
type pickers struct {
	f       pickerFlags
	servers []*extproc.Server
	open    []net.Listener
}

// check refuses what a picker cannot do with a configuration.
func (p *pickers) check(cfg *configs.Config) error {
	for _, plugin := range cfg.Plugins {
		if plugin.Kind == "filter" {
			return fmt.Errorf("plugin %q is a filter, which only sees requests that the door itself answers: a picker cannot run it", plugin.Name)
		}
	}
	named := map[string]bool{}
	for _, pool := range cfg.Pools {
		if pool.Driver != "static" && !pool.OfPods() {
			continue
		}
		named[pool.Name] = true
		for _, w := range pool.Workers {
			u, err := url.Parse(w.URL)
			if err != nil {
				continue // the configuration's own check has said so
			}
			if _, err := netip.ParseAddr(u.Hostname()); err != nil {
				return fmt.Errorf("worker %s/%s: %q is a name: a picker tells gateways addresses", pool.Name, w.Name, u.Hostname())
			}
			if strings.Trim(u.Path, "/") != "" {
				return fmt.Errorf("worker %s/%s: %q is a path, which a picker cannot add to a request", pool.Name, w.Name, u.Path)
			}
		}
	}
	for _, l := range p.f.listen {
		if pool, _ := splitListen(l); pool != "" && !named[pool] {
			return fmt.Errorf("--listen %s: there is no pool %q", l, pool)
		}
	}
	return nil
}

// splitListen reads [POOL=]ADDRESS.
func splitListen(s string) (pool, address string) {
	if pool, address, ok := strings.Cut(s, "="); ok {
		return pool, address
	}
	return "", s
}

// start opens the pickers of a door.
func (p *pickers) start(d *balancer.Door, o balancer.Options, cfg *configs.Config) error {
	shown, err := p.certificate()
	if err != nil {
		return err
	}
	for _, l := range p.f.listen {
		pool, address := splitListen(l)
		s, err := extproc.New(extproc.Options{
			Host: d.Picker(balancer.PickerOptions{Pool: pool, Endpoints: p.f.endpoints}), Certificate: shown,
			Unwatched: p.f.unwatched, MostBody: int64(cfg.Door.Limits.Body), Log: o.Log,
		})
		if err != nil {
			return err
		}
		if err := p.serve(s, address); err != nil {
			return err
		}
		p.servers = append(p.servers, s)
	}
	if p.f.health != "" {
		if err := p.serve(p.servers[0], p.f.health); err != nil {
			return err
		}
	}
	return nil
}

// ready tells gateways whether the pickers take requests.
func (p *pickers) ready(yes bool) {
	for _, s := range p.servers {
		s.Ready(yes)
	}
}

// serve has a picker answer at an address.
func (p *pickers) serve(s *extproc.Server, address string) error {
	l, err := control.Listen("--listen", address)
	if err != nil {
		p.stop()
		return err
	}
	p.open = append(p.open, l)
	go s.Serve(l)
	return nil
}

// addresses are where the pickers listen.
func (p *pickers) addresses() string {
	var list []string
	for _, l := range p.open {
		list = append(list, l.Addr().String())
	}
	return strings.Join(list, ", ")
}

// certificate is what gateways are shown, read again when its files change; nil: the
// pickers make one.
func (p *pickers) certificate() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	if p.f.cert == "" {
		return nil, nil
	}
	cert, err := certificate.Read(configs.TLS{Cert: p.f.cert, Key: p.f.key})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	return func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = cert.Refresh() // one that does not load replaces nothing
		return cert.Shown(true).GetCertificate(h)
	}, nil
}

// run serves, once all workers that are to be found are known, until the first signal, and
// a while on while gateways leave; then the streams that are there end, and the door with
// them. A second signal ends all at once.
func (p *pickers) run(ctx context.Context, d *balancer.Door, known <-chan struct{}) error {
	soft, drain := context.WithCancel(ctx)
	hard, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer drain()
	defer kill()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		for on := true; on; {
			select {
			case <-known:
				p.ready(true)
				known = nil
			case <-signals:
				on = false
			case <-hard.Done():
				return
			}
		}
		p.ready(false)
		select {
		case <-time.After(p.f.leave):
		case <-signals:
			kill()
		case <-hard.Done():
			return
		}
		for _, s := range p.servers {
			go s.Drain(hard)
		}
		drain()
		select {
		case <-signals:
			kill()
		case <-hard.Done():
		}
	}()
	err := d.Run(soft, hard)
	p.stop()
	return err
}

// stop ends the pickers, and closes their listeners with them.
func (p *pickers) stop() {
	for _, s := range p.servers {
		s.Stop()
	}
	for _, l := range p.open {
		l.Close()
	}
}

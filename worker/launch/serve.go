package launch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"roundhouse/worker"
)

// The server's own patience.
const (
	keepAlive    = 5 * time.Second
	headerRead   = 30 * time.Second
	headerBytes  = 64 << 10
	goodbye      = 2 * time.Second // for answers that are being written when the engine has ended
	throughputAt = 10 * time.Second
)

// Serve starts a worker and serves until ctx ends, then drains for
// o.ShutdownTimeout and stops.
func Serve(ctx context.Context, o Options, log *slog.Logger) error {
	for _, w := range o.Warnings {
		log.Warn(w)
	}
	var secret *tls.Config
	if o.TLS.on() {
		config, err := o.TLS.open(log)
		if err != nil {
			return err
		}
		secret = config
	}
	port, err := o.reserve()
	if err != nil {
		return err
	}
	defer port.close()
	w, err := Open(o, log)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	ln, err := port.listen()
	if err != nil {
		stop()
		<-ended
		return errors.Join(err, w.Close())
	}
	if secret != nil {
		ln = tls.NewListener(ln, secret)
	}
	err = serve(ctx, &o, w, ln, ended, stop, log)
	return errors.Join(err, w.Close())
}

// serve answers until ctx ends or the engine fails.
func serve(ctx context.Context, o *Options, w *Worker, ln net.Listener, ended chan error, stop context.CancelFunc, log *slog.Logger) error {
	hs := &http.Server{
		Handler: o.CORS.wrap(belowRoot(o.RootPath, w.Server)), ReadHeaderTimeout: headerRead, IdleTimeout: keepAlive, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- hs.Serve(ln) }()
	logging, silence := context.WithCancel(context.Background())
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		if !o.NoLogStats {
			logThroughput(logging, w.Engine, log)
		}
	}()
	defer func() { silence(); <-logged }()
	log.Info("ready", "address", ln.Addr().String(), "models", fmt.Sprint(w.Engine.Config().Models))

	var failed error
	select {
	case <-ctx.Done():
		drain(o, w.Engine, log)
		stop()
		failed = <-ended
	case failed = <-ended:
		log.Error("the engine has stopped", "error", failed)
		stop()
	case failed = <-served:
		stop()
		<-ended
		return fmt.Errorf("the HTTP server stopped: %w", failed)
	}
	bye, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	if hs.Shutdown(bye) != nil {
		_ = hs.Close() // the status streams, which end with their connections
	}
	<-served
	return failed
}

// drain lets what is under way end, for as long as it may take.
func drain(o *Options, e *worker.Engine, log *slog.Logger) {
	st := e.Stats()
	log.Info("shutting down", "running", st.Running, "waiting", st.Waiting, "timeout", o.ShutdownTimeout.String())
	e.Drain()
	if o.ShutdownTimeout <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.ShutdownTimeout)
	defer cancel()
	if !e.WaitIdle(ctx) {
		log.Warn("requests are aborted: the shutdown timeout has passed")
	}
}

// logThroughput writes vLLM's line every ten seconds while there is something
// to say.
func logThroughput(ctx context.Context, e *worker.Engine, log *slog.Logger) {
	tick := time.NewTicker(throughputAt)
	defer tick.Stop()
	before, quiet := e.Stats(), true
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := e.Stats()
		idle := now.GenerationTokens == before.GenerationTokens && now.Running+now.Waiting == 0
		if !idle || !quiet {
			seconds := throughputAt.Seconds()
			rate := 0.0
			if q := now.PrefixQueries; q > 0 {
				rate = float64(now.PrefixHits) / float64(q) * 100
			}
			log.Info(fmt.Sprintf("Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s, Running: %d reqs, Waiting: %d reqs, GPU KV cache usage: %.1f%%, Prefix cache hit rate: %.1f%%",
				float64(now.PromptTokens-before.PromptTokens)/seconds, float64(now.GenerationTokens-before.GenerationTokens)/seconds,
				now.Running, now.Waiting, now.Usage*100, rate))
		}
		before, quiet = now, idle
	}
}

package supervisor

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"roundhouse/configs"
	"roundhouse/supervisor/core"
)

// listenAdmin takes the admin API's address. Off the loopback and without a
// token it is refused: whoever reaches it can stop everything.
func listenAdmin(cfg configs.Admin) (net.Listener, error) {
	if path, ok := strings.CutPrefix(cfg.Listen, "unix://"); ok {
		return listenUnix(path)
	}
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("admin.listen: %w", err)
	}
	if addr := l.Addr().(*net.TCPAddr); !addr.IP.IsLoopback() && cfg.Token == "" {
		l.Close()
		return nil, fmt.Errorf("admin.listen: %s can be reached from other machines; set admin.token, or listen on 127.0.0.1", cfg.Listen)
	}
	return l, nil
}

// listenUnix listens on a socket that its owner alone may use. One that a dead
// supervisor left behind is taken away first.
func listenUnix(path string) (net.Listener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return nil, fmt.Errorf("admin.listen: another program answers on %s", path)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("admin.listen: %s exists and is no socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("admin.listen: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("admin.listen: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("admin.listen: %w", err)
	}
	return l, nil
}

// handler is the admin API.
func (s *Supervisor) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/workers", s.answer(func(*http.Request) (any, error) { return s.workers(), nil }))
	mux.HandleFunc("GET /api/pools", s.answer(func(*http.Request) (any, error) { return s.pools(), nil }))
	mux.HandleFunc("GET /api/rotations", s.answer(func(*http.Request) (any, error) { return s.rotations(), nil }))
	mux.HandleFunc("GET /api/schedule", s.answer(func(*http.Request) (any, error) { return s.schedules(), nil }))
	mux.HandleFunc("GET /api/version", s.answer(s.version))
	mux.HandleFunc("GET /api/config", s.answer(func(*http.Request) (any, error) { return s.plan.config.Redacted(), nil }))
	mux.HandleFunc("GET /api/events", s.serveEvents)
	mux.HandleFunc("GET /api/workers/{pool}/{name}/logs", s.serveLogs)
	mux.HandleFunc("GET /api/queue", s.relay)
	mux.HandleFunc("GET /api/requests", s.relay)
	mux.HandleFunc("DELETE /api/requests/{id}", s.relay)
	mux.HandleFunc("GET /api/decisions/{id}", s.relay)
	mux.HandleFunc("GET /api/plugins", s.servePlugins)
	mux.HandleFunc("GET /metrics", s.serveMetrics)
	mux.HandleFunc("POST /api/reload", s.answer(s.reload))
	mux.HandleFunc("POST /api/workers/{pool}/{name}/{verb}", s.answer(s.commandWorker))
	mux.HandleFunc("POST /api/pools/{pool}/{verb}", s.answer(s.commandPool))
	mux.HandleFunc("POST /api/upgrade", s.upgrade)
	mux.HandleFunc("POST /api/schedule", s.answer(s.commandSchedule))
	return s.guard(mux)
}

// guard turns away whoever may not ask: without the token, from a page of
// another origin, or by a name that somebody has pointed at this address.
func (s *Supervisor) guard(next http.Handler) http.Handler {
	cfg := s.options.Config.Admin
	unix := strings.HasPrefix(cfg.Listen, "unix://")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !unix && !hostAllowed(r.Host, cfg.Listen):
			fail(w, http.StatusForbidden, "the Host header names neither this machine nor admin.listen")
		case !unix && !originAllowed(r.Header.Get("Origin"), r.Host):
			fail(w, http.StatusForbidden, "requests from pages of another origin are refused")
		case cfg.Token != "" && !tokenRight(r.Header.Get("Authorization"), cfg.Token.Reveal()):
			w.Header().Set("WWW-Authenticate", "Bearer")
			fail(w, http.StatusUnauthorized, "the admin API asks for admin.token as a bearer token")
		default:
			r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
			next.ServeHTTP(w, r)
		}
	})
}

// hostAllowed takes addresses, localhost and the configured name; any other
// name may be one that an attacker's DNS points here.
func hostAllowed(host, listen string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	if _, err := netip.ParseAddr(name); err == nil || strings.EqualFold(name, "localhost") {
		return true
	}
	configured, _, err := net.SplitHostPort(listen)
	return err == nil && configured != "" && strings.EqualFold(name, configured)
}

func originAllowed(origin, host string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

func tokenRight(header, token string) bool {
	got, ok := strings.CutPrefix(header, "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(got), []byte(token)) == 1
}

// fail answers with an error in words.
func fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "code": status}}) // the asker may be gone
}

// answer has the loop make an answer, and sends it as JSON.
func (s *Supervisor) answer(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var v any
		var err error
		var data []byte
		if asked := s.ask(r.Context(), func() {
			if v, err = f(r); err == nil {
				data, err = json.Marshal(v) // in the loop, whose state v may share
			}
		}); asked != nil {
			fail(w, http.StatusServiceUnavailable, asked.Error())
			return
		}
		switch {
		case errors.Is(err, core.ErrUnknown):
			fail(w, http.StatusNotFound, err.Error())
		case errors.Is(err, core.ErrState):
			fail(w, http.StatusConflict, err.Error())
		case err != nil:
			fail(w, http.StatusBadRequest, err.Error())
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(append(data, '\n')) // the asker may be gone
		}
	}
}

func (s *Supervisor) version(*http.Request) (any, error) {
	return map[string]any{"schema": 1, "version": s.options.Version, "door": s.doorView().Version, "pid": os.Getpid()}, nil
}

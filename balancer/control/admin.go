package control

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"roundhouse/configs"
)

// ListenAdmin takes the address of an admin API. Off the loopback and without a
// token it is refused: whoever reaches it can stop everything.
func ListenAdmin(cfg configs.Admin) (net.Listener, error) {
	if path, ok := strings.CutPrefix(cfg.Listen, "unix://"); ok {
		return listenUnix(path)
	}
	l, err := Listen("admin.listen", cfg.Listen)
	if err != nil {
		return nil, err
	}
	if addr := l.Addr().(*net.TCPAddr); !addr.IP.IsLoopback() && cfg.Token == "" {
		l.Close()
		return nil, fmt.Errorf("admin.listen: %s can be reached from other machines; set admin.token, or listen on 127.0.0.1", cfg.Listen)
	}
	return l, nil
}

// listenUnix listens on a socket that its owner alone may use. One that a dead
// process left behind is taken away first.
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

// Guard turns away whoever may not ask an admin API: without the token, from a
// page of another origin, or by a name that somebody has pointed at this
// address.
func Guard(cfg configs.Admin, next http.Handler) http.Handler {
	unix := strings.HasPrefix(cfg.Listen, "unix://")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !unix && !hostAllowed(r.Host, cfg.Listen):
			Fail(w, http.StatusForbidden, "the Host header names neither this machine nor admin.listen")
		case !unix && !originAllowed(r.Header.Get("Origin"), r.Host):
			Fail(w, http.StatusForbidden, "requests from pages of another origin are refused")
		case looks(cfg, r):
			if r.Method != http.MethodGet && r.Method != http.MethodHead {
				Fail(w, http.StatusForbidden, "admin.read_token only reads; this takes admin.token")
				return
			}
			next.ServeHTTP(w, r)
		case cfg.Token != "" && !tokenRight(r.Header.Get("Authorization"), cfg.Token.Reveal()):
			w.Header().Set("WWW-Authenticate", "Bearer")
			Fail(w, http.StatusUnauthorized, "the admin API asks for admin.token as a bearer token")
		default:
			r.Body = http.MaxBytesReader(w, r.Body, 16<<20)
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

// looks reports whether a request comes from somebody who may read and nothing else.
func looks(cfg configs.Admin, r *http.Request) bool {
	return cfg.Token != "" && cfg.ReadToken != "" && tokenRight(r.Header.Get("Authorization"), cfg.ReadToken.Reveal())
}

func tokenRight(header, token string) bool {
	got, ok := strings.CutPrefix(header, "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(got), []byte(token)) == 1
}

// Fail answers with an error in words.
func Fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "code": status}}) // the asker may be gone
}

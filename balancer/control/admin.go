package control

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
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

// Fail answers with an error in words.
func Fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "code": status}}) // the asker may be gone
}

// Command worker is the smallest server that a container can hold: it answers
// /health and /v1/models on --port, after --delay, or ends with --exit. FAKE_MODEL
// is what it serves whatever it was told to, /eat takes memory for ever, and
// /inside?dir=DIR tells what it sees: what is under DIR, which of that it may open,
// its groups, CPUs and memory nodes, and what confines it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// inside tells what a process of the container sees.
func inside(w http.ResponseWriter, r *http.Request) {
	var v struct {
		Files  []string // with "!" behind those that may not be opened
		Groups []int
		CPUs   string
		Mems   string

		Effective  string // capabilities, in hexadecimal digits
		NoNewPrivs string
		Memory     string // the limit of its control group
		Pids       string
		Shm        int64 // bytes of /dev/shm
		Hosts      string
		Memlock    uint64
		Env        []string
		Args       []string
	}
	_ = filepath.WalkDir(r.FormValue("dir"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // what cannot be read is not there
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		switch {
		case err == nil:
			f.Close()
		case errors.Is(err, fs.ErrPermission):
			path += "!"
		} // no driver is behind the node: it may be opened, and cannot
		v.Files = append(v.Files, path)
		return nil
	})
	v.Groups, _ = os.Getgroups()
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch key {
		case "Cpus_allowed_list":
			v.CPUs = strings.TrimSpace(value)
		case "Mems_allowed_list":
			v.Mems = strings.TrimSpace(value)
		case "CapEff":
			v.Effective = strings.TrimSpace(value)
		case "NoNewPrivs":
			v.NoNewPrivs = strings.TrimSpace(value)
		}
	}
	v.Memory = first("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
	v.Pids = first("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max")
	v.Hosts = first("/etc/hosts")
	var shm syscall.Statfs_t
	if syscall.Statfs("/dev/shm", &shm) == nil {
		v.Shm = int64(shm.Blocks) * shm.Bsize
	}
	var memlock syscall.Rlimit
	_ = syscall.Getrlimit(8, &memlock) // RLIMIT_MEMLOCK, the same on amd64 and arm64
	v.Memlock = memlock.Cur
	v.Env, v.Args = os.Environ(), os.Args[1:]
	_ = json.NewEncoder(w).Encode(v)
}

// first is what the first file holds that is there.
func first(paths ...string) string {
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil {
			return strings.TrimSpace(string(text))
		}
	}
	return ""
}

func main() {
	port := flag.String("port", "8000", "")
	host := flag.String("host", "", "")
	model := flag.String("served-model-name", "fake", "")
	exit := flag.Int("exit", 0, "end at once with this status")
	delay := flag.Duration("delay", 0, "")
	flag.Parse()
	if name := os.Getenv("FAKE_MODEL"); name != "" {
		*model = name
	}
	fmt.Println("worker", *model)
	if *exit != 0 {
		os.Exit(*exit)
	}
	time.Sleep(*delay)
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"data":[{"id":%q}]}`, *model) })
	mux.HandleFunc("/v1/completions", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"choices":[{"text":"ok"}]}`) })
	mux.HandleFunc("/inside", inside)
	mux.HandleFunc("/eat", func(http.ResponseWriter, *http.Request) {
		var eaten [][]byte
		for {
			eaten = append(eaten, bytes.Repeat([]byte{1}, 8<<20))
		}
	})
	server := &http.Server{Addr: *host + ":" + *port, Handler: mux}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		_ = server.Shutdown(context.Background())
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

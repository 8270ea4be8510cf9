// Command worker is the smallest server that a container can hold: it answers
// /health and /v1/models on --port, after --delay, or ends with --exit. FAKE_MODEL
// is what it serves whatever it was told to, /eat takes memory for ever, and
// /inside?dir=DIR tells what it sees: what is under DIR, which of that it may open,
// its groups, CPUs and memory nodes.
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
		}
	}
	_ = json.NewEncoder(w).Encode(v)
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

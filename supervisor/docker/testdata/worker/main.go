// Command worker is the smallest server that a container can hold: it answers
// /health and /v1/models on --port, after --delay, or ends with --exit. FAKE_MODEL
// is what it serves whatever it was told to, and /eat takes memory for ever.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

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

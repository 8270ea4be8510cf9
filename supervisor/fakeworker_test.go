package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// serveFake is a worker's `serve`: it answers with numbers, one a line, as
// many as max_tokens says, every FAKE_PACE; with FAKE_HANGS nothing after the first
// stream is answered. FAKE_FAIL ends it before it is
// ready; a file named by FAKE_FAIL_IF does so while it exists.
func serveFake(args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	port := flags.Int("port", 0, "")
	model := flags.String("served-model-name", "", "")
	for _, ignored := range []string{"host", "model", "quantization", "max-model-len", "device", "cpus", "mems"} {
		flags.String(ignored, "", "")
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if os.Getenv("FAKE_FAIL") != "" {
		return errors.New("cannot load the model " + os.Getenv("FAKE_FAIL"))
	}
	if path := os.Getenv("FAKE_FAIL_IF"); path != "" {
		if _, err := os.Stat(path); err == nil {
			return errors.New("cannot load the model: " + path + " says so")
		}
	}
	pace, _ := time.ParseDuration(os.Getenv("FAKE_PACE"))
	if name := os.Getenv("FAKE_MODEL"); name != "" {
		*model = name
	}
	var streamed atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"data":[{"id":%q}]}`, *model)
	})
	mux.HandleFunc("/v1/completions", func(w http.ResponseWriter, r *http.Request) {
		var ask struct {
			N    int  `json:"max_tokens"`
			Line bool `json:"stream"`
		}
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if ask.Line {
			streamed.Store(true)
		} else if streamed.Load() && os.Getenv("FAKE_HANGS") != "" {
			<-r.Context().Done()
			return
		}
		if !ask.Line {
			fmt.Fprint(w, `{"choices":[{"text":"ok"}]}`)
			return
		}
		for i := 1; i <= ask.N; i++ {
			fmt.Fprintln(w, i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(pace):
			case <-r.Context().Done(): // or its end would wait for the whole answer
				return
			}
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(*port))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux}
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	done := make(chan error, 1)
	go func() {
		<-asked.Done()
		done <- server.Shutdown(context.Background())
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-done
}

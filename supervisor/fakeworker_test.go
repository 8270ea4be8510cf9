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
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"roundhouse/configs"
)

// adaptersFake are the adapters of such a worker, with their paths.
type adaptersFake struct{ paths sync.Map }

func (f *adaptersFake) cards(base string) (text string) {
	f.paths.Range(func(name, path any) bool {
		text += fmt.Sprintf(`,{"id":%q,"root":%q,"parent":%q}`, name, path, base)
		return true
	})
	return text
}

func (f *adaptersFake) load(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Name    string `json:"lora_name"`
		Path    string `json:"lora_path"`
		Inplace bool   `json:"load_inplace"`
	}
	err := json.NewDecoder(r.Body).Decode(&ask)
	_, there := f.paths.Load(ask.Name)
	switch {
	case err != nil || there: // an older vLLM knows no load_inplace
		http.Error(w, "has already been loaded", http.StatusBadRequest)
	case ask.Path == "/absent":
		http.Error(w, "No adapter found for /absent", http.StatusNotFound)
	default:
		f.paths.Store(ask.Name, ask.Path)
	}
}

func (f *adaptersFake) unload(_ http.ResponseWriter, r *http.Request) {
	var ask struct {
		Name string `json:"lora_name"`
	}
	if json.NewDecoder(r.Body).Decode(&ask) == nil {
		f.paths.Delete(ask.Name)
	}
}

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
	enabled := flags.Bool("enable-lora", false, "")
	flags.Int("max-cpu-loras", 0, "")
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
	var loaded adaptersFake
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"data":[{"id":%q,"root":"/model","parent":null}%s]}`, *model, loaded.cards(*model))
	})
	if *enabled && os.Getenv(configs.RuntimeAdapters) == "True" {
		mux.HandleFunc("POST /v1/load_lora_adapter", loaded.load)
		mux.HandleFunc("POST /v1/unload_lora_adapter", loaded.unload)
	}
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

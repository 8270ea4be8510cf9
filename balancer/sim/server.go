package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"roundhouse/worker/api"
)

// FirstToken is the id of the first token of every answer; the n-th has the
// id FirstToken+n and the text "n ". A prompt token has a lower id.
const FirstToken = 1000

// Options is how a Worker behaves from the start.
type Options struct {
	Own        bool          // speaks our status protocol and resumes; else it looks like vLLM
	Model      string        // "" serves "sim"
	Capacity   int64         // tokens of KV; 0: 100 000
	Context    int           // the longest context; 0: 8192; below 0: it does not say
	Mute       bool          // has no /metrics
	Pace       time.Duration // between two tokens
	Prefill    time.Duration // before the first
	Words      int           // of an answer, unless max_tokens is less; 0: 20
	Salt       string        // part of every word: tells answers of different workers apart
	NoIDs      bool          // does not know return_token_ids
	Halves     bool          // every fifth word ends in half a character, which comes with the next word
	Reason     int           // so many words are reasoning, ended by "</think>"
	Caches     bool          // at a Speed: keeps prompts' blocks for others that begin alike, and counts hits
	Age        time.Duration // for so long its metrics stay what they were
	Modalities []string      // of prompts, told by Own; nil: it says nothing
	Runtime    bool          // loads and unloads adapters while it runs, and refuses names that it does not serve
	Speed      *Speed        // computes as vLLM does, many answers at once; Pace, Prefill and Capacity say nothing then
}

// Worker is a worker over HTTP whose answers are numbered words, so that a
// test sees every word that is missing, doubled or out of order.
type Worker struct {
	Options
	Faults

	URL string

	Live      atomic.Int64 // requests being served
	Served    atomic.Int64 // requests begun
	Cancelled atomic.Int64 // requests whose client left

	mu      sync.Mutex
	used    int64
	doors   map[string]*api.DoorStatus
	prompts []string // the bodies received
	heads   []http.Header
	ln      net.Listener
	srv     *http.Server
	gen     string
	started float64 // when it last began to listen, in Unix seconds
	tokens  atomic.Int64
	prompt  atomic.Int64 // tokens of prompts that are computed
	live    *live
	end     context.CancelFunc
	over    chan struct{} // closed when it is terminated
	page    struct {      // of its metrics
		sync.Mutex
		shown   []byte // and since when
		written time.Time
	}

	adapters adapters
}

// Faults are how a worker fails, as a test tells it while it runs.
type Faults struct {
	DieAfter  atomic.Int64  // > 0: the connection is cut after so many tokens of a stream
	DieOnce   *atomic.Int64 // as DieAfter, for the next stream alone; workers may share one
	TermAfter atomic.Int64  // > 0: terminated as a vLLM after so many tokens: it aborts what is under way, and what comes
	Status    atomic.Int64  // > 0: answer every request with this status
	Hang      atomic.Bool   // accept requests and answer nothing
	Ending    atomic.Bool   // refuse requests as a worker does that was told to end, and say so
	EndNext   atomic.Bool   // begin to with the next request
	Lie       atomic.Value  // string: replaces the exposition of /metrics
}

// New makes a worker; Start lets it listen.
func New(o Options) *Worker { return &Worker{Options: o} }

// Start listens on a free port, or again on the one it had.
func (w *Worker) Start() error {
	addr := "127.0.0.1:0"
	if w.URL != "" {
		addr = strings.TrimPrefix(w.URL, "http://")
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	w.ln, w.URL = ln, "http://"+ln.Addr().String()
	w.mu.Lock()
	w.gen = strconv.FormatInt(time.Now().UnixNano(), 36)
	w.started = float64(time.Now().UnixMilli()) / 1000
	w.doors, w.used = map[string]*api.DoorStatus{}, 0
	w.adapters.forget()
	w.tokens.Store(0)
	w.prompt.Store(0)
	var ctx context.Context
	ctx, w.end = context.WithCancel(context.Background())
	w.over = make(chan struct{})
	if w.Speed != nil {
		w.live = newLive(*w.Speed)
		go w.live.run(ctx)
	}
	w.mu.Unlock()
	m := http.NewServeMux()
	m.HandleFunc("GET "+api.StatusPath, w.status)
	m.HandleFunc("GET /metrics", w.metrics)
	m.HandleFunc("GET /v1/models", w.models)
	m.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	m.HandleFunc("POST /v1/completions/render", noSuchRoute) // which vllm-router asks for tokens before the next one
	m.HandleFunc("POST /v1/chat/completions/render", noSuchRoute)
	m.HandleFunc("POST /tokenize", w.tokenize)
	if w.Runtime {
		m.HandleFunc("POST /v1/load_lora_adapter", w.loadAdapter)
		m.HandleFunc("POST /v1/unload_lora_adapter", w.unloadAdapter)
	}
	m.HandleFunc("POST /", w.generate)
	w.srv = &http.Server{Handler: m}
	go w.srv.Serve(ln)
	return nil
}

// Stop cuts every connection, as a killed process does.
func (w *Worker) Stop() {
	w.end()
	w.srv.Close()
}

// said counts a token.
func (w *Worker) said() {
	if n := w.TermAfter.Load(); w.tokens.Add(1) == n {
		close(w.terminated())
	}
}

// terminated is closed once the worker is terminated.
func (w *Worker) terminated() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// noSuchRoute answers as vLLM does where it has no such route.
func noSuchRoute(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(http.StatusNotFound)
	io.WriteString(rw, `{"detail":"Not Found"}`)
}

// tokenize makes a token of every four bytes of a text.
func (w *Worker) tokenize(rw http.ResponseWriter, r *http.Request) {
	var b struct {
		Prompt   string          `json:"prompt"`
		Messages json.RawMessage `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		http.Error(rw, `{"error":{"message":"bad body"}}`, http.StatusBadRequest)
		return
	}
	ids := []uint32{}
	for piece := range slices.Chunk([]byte(b.Prompt+string(b.Messages)), 4) {
		h := fnv.New32a()
		h.Write(piece)
		ids = append(ids, h.Sum32()%100_000)
	}
	rw.Header().Set("Content-Type", "application/json")
	json.NewEncoder(rw).Encode(map[string]any{"count": len(ids), "max_model_len": w.context(), "tokens": ids, "token_strs": nil})
}

// computes is the engine of a worker that computes as vLLM does, or nil.
func (w *Worker) computes() *live {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.live
}

// Lateness is by how much a worker at a Speed is late with its tokens, on average, for
// want of a processor.
func (w *Worker) Lateness() time.Duration { return w.computes().lateness() }

// Bodies returns the bodies of the requests received so far.
func (w *Worker) Bodies() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.prompts...)
}

// Heads returns the header fields of the requests received so far.
func (w *Worker) Heads() []http.Header {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]http.Header(nil), w.heads...)
}

func (w *Worker) model() string {
	if w.Model == "" {
		return "sim"
	}
	return w.Model
}

func (w *Worker) context() int {
	if w.Context == 0 {
		return 8192
	}
	return w.Context
}

func (w *Worker) capacity() int64 {
	if w.Speed != nil {
		return int64(w.Speed.Capacity)
	}
	if w.Capacity == 0 {
		return 100_000
	}
	return w.Capacity
}

func (w *Worker) models(rw http.ResponseWriter, _ *http.Request) {
	if w.Context < 0 {
		fmt.Fprintf(rw, `{"object":"list","data":[{"id":%q,"object":"model"}%s]}`, w.model(), w.cards())
		return
	}
	fmt.Fprintf(rw, `{"object":"list","data":[{"id":%q,"object":"model","max_model_len":%d}%s]}`, w.model(), w.context(), w.cards())
}

func (w *Worker) metrics(rw http.ResponseWriter, r *http.Request) {
	if w.Mute {
		http.NotFound(rw, r)
		return
	}
	if lie, ok := w.Lie.Load().(string); ok && lie != "" {
		io.WriteString(rw, lie)
		return
	}
	w.page.Lock()
	defer w.page.Unlock()
	if now := time.Now(); w.Age == 0 || now.Sub(w.page.written) >= w.Age {
		w.page.shown, w.page.written = w.exposition(), now
	}
	rw.Write(w.page.shown)
}

func (w *Worker) status(rw http.ResponseWriter, r *http.Request) {
	if !w.Own {
		http.NotFound(rw, r)
		return
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	enc := json.NewEncoder(rw)
	for {
		w.mu.Lock()
		s := api.Status{
			Protocol: api.StatusProtocol, Generation: w.gen, At: time.Now().UnixMilli(), CapacityTokens: w.capacity(), UsedTokens: w.used,
			MaxModelLen: w.context(), Running: int(w.Live.Load()), GeneratedTokens: w.tokens.Load(), Models: append([]string{w.model()}, w.Adapters()...), Modalities: w.Modalities, Draining: w.Ending.Load(), Doors: map[string]api.DoorStatus{},
		}
		for id, d := range w.doors {
			s.Doors[id] = *d
		}
		w.mu.Unlock()
		if enc.Encode(s) != nil {
			return
		}
		rw.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// body is what the worker reads of a request.
type body struct {
	Model     string          `json:"model"`
	Stream    bool            `json:"stream"`
	MaxTokens int             `json:"max_tokens"`
	Messages  json.RawMessage `json:"messages"`
	Prompt    json.RawMessage `json:"prompt"`
	ReturnIDs bool            `json:"return_token_ids"`
	Options   struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Resume *api.Resume     `json:"roundhouse_resume"`
	Tools  json.RawMessage `json:"tools"`
	Stop   string          `json:"stop"` // never met; a worker that looks like vLLM holds text back for it
}

func (w *Worker) generate(rw http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Live.Add(1)
	w.Served.Add(1)
	defer w.Live.Add(-1)
	w.mu.Lock()
	w.prompts, w.heads = append(w.prompts, string(raw)), append(w.heads, r.Header)
	w.mu.Unlock()
	if w.Hang.Load() {
		<-r.Context().Done()
		w.Cancelled.Add(1)
		return
	}
	if w.EndNext.CompareAndSwap(true, false) {
		w.Ending.Store(true)
	}
	status, message := int(w.Status.Load()), "told to"
	if w.Ending.Load() {
		status, message = http.StatusServiceUnavailable, "the worker is shutting down"
	}
	if status > 0 {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(status)
		fmt.Fprintf(rw, `{"error":{"message":%q,"type":"x","param":null,"code":%d}}`, message, status)
		return
	}
	var b body
	if err := json.Unmarshal(raw, &b); err != nil {
		http.Error(rw, `{"error":{"message":"bad body"}}`, 400)
		return
	}
	a := &answer{w: w, over: w.terminated(), b: &b, rw: rw, r: r, chat: strings.HasSuffix(r.URL.Path, "/chat/completions")}
	a.run(len(raw))
}

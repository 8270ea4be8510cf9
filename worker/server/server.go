package server

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"roundhouse/worker"
	"roundhouse/worker/api"
	"roundhouse/worker/metrics"
	"roundhouse/worker/profile"
	"roundhouse/worker/tokenizer"
)

// Config is what a server is made from.
type Config struct {
	Chat
	Pooling
	Headers
	Media

	Engine    *worker.Engine
	Tokenizer *tokenizer.Tokenizer

	Models      []string // as clients call it; the first is the metrics' model_name
	Root        string   // the model's folder, as /v1/models tells it
	Version     string
	MaxModelLen int
	Vocab       int
	BOSToken    string
	EOSToken    string
	Defaults    Defaults
	MaxLogprobs int
	Seed        *uint64 // of the seeds of requests that name none; nil: drawn at random

	TokensAsIDs         bool // logprobs show tokens as ids, whatever the request says
	LogRequests         bool // a line for each request, without any of its text
	BodyLimit           int64
	APIKeys             []string
	CacheConfig         []metrics.Label       // of vllm:cache_config_info
	Device              func(t *metrics.Text) // writes the metrics of the device; nil: none
	LegacyMetrics       bool                  // without vllm:num_requests_waiting_by_reason, which old scripts stumble over
	TokenizerInfo       map[string]any        // what /tokenizer_info answers; nil: there is no such route
	PromptTokensDetails bool
	ForceUsage          bool
	LoadAdapters        bool              // the routes that load and unload adapters
	DevMode             bool              // the routes that operate the engine
	Profiler            *profile.Profiler // nil: no profiles are taken
	Log                 *slog.Logger
}

// Chat is how chats become prompts, and texts become messages.
type Chat struct {
	// Template renders a chat into the parts of a prompt; nil: the model has none.
	Template func(vars map[string]any) ([]tokenizer.Segment, error)
	// Compile makes a form ready; nil: answers cannot be restricted.
	Compile func(Form) (Compiled, error)
	// ToolParser and ReasoningParser are names of worker/parser; "": none.
	ToolParser       string
	ReasoningParser  string
	TemplateDefaults map[string]json.RawMessage // of chat_template_kwargs
	HideTools        bool                       // from the prompt where tool_choice is none
	Role             string                     // who speaks in a chat's answers; "": assistant
}

// Pooling is how a model that embeds, classifies or scores reads its texts.
type Pooling struct {
	Kind        Kind
	Labels      []string                     // names of a classifier's classes, where the model has them
	EmbedPrefix string                       // put before every text, where the model asks for it
	Prompts     map[string]string            // that a request may name instead of EmbedPrefix
	Dimensions  []int                        // that a vector may be cut to; nil: none, empty: any
	Segments    bool                         // the texts of a pair have segments
	Positions   func(tokens []int32) []int32 // of a text's tokens; nil, or its answer nil: as they come
	// Pair writes a query, a document and an instruction ("": the model's own) as
	// the model was trained with them; nil: as the tokenizer joins two texts.
	Pair func(query, document, instruction string) []tokenizer.Segment
}

// Headers are what answers have besides, as vLLM's flags say.
type Headers struct {
	RequestIDHeaders bool
	LoadTracking     bool
}

// Defaults are what a request that leaves them out is sampled with.
type Defaults struct {
	Temperature, TopP, MinP, Repetition *float64
	TopK                                *int
}

// Server answers HTTP requests.
type Server struct {
	cfg     Config
	longest int // bytes of the longest token
	mux     *http.ServeMux
	keys    [][sha256.Size]byte
	load    atomic.Int64 // requests that generate
	http    *httpStats
	parsed  parsedCounts
	created int64
	seeds   seeds
	traits  traits
	stored  *stored
	listed  []string // the routes, as "METHOD /path"
}

// New makes a server.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, mux: http.NewServeMux(), http: newHTTPStats(), stored: newStored(), created: time.Now().Unix(), longest: 1}
	for id := range cfg.Tokenizer.Size() {
		s.longest = max(s.longest, len(cfg.Tokenizer.TokenBytes(int32(id))))
	}
	for _, k := range cfg.APIKeys {
		s.keys = append(s.keys, sha256.Sum256([]byte(k)))
	}
	if cfg.Sight != nil {
		cfg.Sight.lists = takesParts(cfg.Template)
	}
	s.seeds.from(cfg.Seed)
	if s.cfg.Role == "" {
		s.cfg.Role = "assistant"
	}
	s.routes()
	return s
}

// generating counts a request that generates and notes that it has arrived.
func (s *Server) generating(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if door := r.Header.Get(api.HeaderDoor); safeID.MatchString(door) {
			if seq, err := strconv.ParseUint(r.Header.Get(api.HeaderSeq), 10, 64); err == nil {
				s.cfg.Engine.Arrived(door, seq)
			}
		}
		s.load.Add(1)
		defer s.load.Add(-1)
		h(w, r)
	}
}

// ServeHTTP implements http.Handler. A panic in a handler ends its request and
// nothing else; one that says BUG ends the process.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := &recorder{ResponseWriter: w, began: time.Now()}
	defer s.http.observe(rec, r)
	defer s.logRequest(rec, r)
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler {
			panic(p)
		}
		if text := fmt.Sprint(p); strings.HasPrefix(text, "BUG:") {
			s.cfg.Log.Error("a broken invariant ends the worker", "panic", text, "stack", string(debug.Stack()))
			go panic(text) // here net/http would go on as if nothing had been
			select {}
		}
		s.cfg.Log.Error("a request failed", "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		if rec.code == 0 {
			writeError(rec, internal("the request could not be served"))
			return
		}
		panic(http.ErrAbortHandler) // the client sees that the answer is cut
	}()
	if s.cfg.RequestIDHeaders {
		if id := r.Header.Get(api.HeaderRequestID); safeID.MatchString(id) {
			rec.Header().Set(api.HeaderRequestID, id)
		}
	}
	if !s.allowed(r) {
		s.unauthorized(rec, r)
		return
	}
	if _, pattern := s.mux.Handler(r); pattern == "" || !plainPath(r.URL.Path) {
		s.unknown(rec, r)
		return
	}
	s.mux.ServeHTTP(rec, r)
}

// allowed checks the key on the paths that vLLM guards, and on those that act on others' requests. Keys are compared by
// digest, which takes the same time whatever they are.
func (s *Server) allowed(r *http.Request) bool {
	if len(s.keys) == 0 || r.Method == http.MethodOptions {
		return true
	}
	guarded := slices.Contains([]string{abortPath, profile.StartPath, profile.StopPath}, r.URL.Path)
	for _, prefix := range []string{"/v1", "/v2", "/inference", "/cohere"} {
		guarded = guarded || strings.HasPrefix(r.URL.Path, prefix)
	}
	if !guarded {
		return true
	}
	token := ""
	if list := r.Header.Values("Authorization"); len(list) == 1 {
		scheme, rest, _ := strings.Cut(list[0], " ")
		if strings.EqualFold(scheme, "bearer") {
			token = rest
		}
	}
	if key := r.Header.Get("X-Api-Key"); token == "" && strings.HasPrefix(r.URL.Path, "/v1/messages") {
		token = key // as Anthropic's clients send it
	}
	sum, ok := sha256.Sum256([]byte(token)), 0
	for _, k := range s.keys {
		ok |= subtle.ConstantTimeCompare(k[:], sum[:])
	}
	return ok == 1
}

func (s *Server) unauthorized(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/v1/messages") {
		refuseMessages(w, &apiError{Message: "Unauthorized", Code: http.StatusUnauthorized})
		return
	}
	writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "Unauthorized"})
}

// fingerprint names the software that answers, as clients may log it.
func (s *Server) fingerprint() *string { return new("roundhouse-" + s.cfg.Version) }

// logRequest writes a line for an answer: nothing of what was said.
func (s *Server) logRequest(rec *recorder, r *http.Request) {
	if s.cfg.LogRequests {
		s.cfg.Log.Info("request", "method", r.Method, "path", r.URL.Path, "status", rec.code, "bytes", rec.bytes, "seconds", fmt.Sprintf("%.3f", time.Since(rec.began).Seconds()))
	}
}

func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

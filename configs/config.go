package configs

import (
	"log/slog"
	"time"
)

// Config is one configuration file, decoded, defaulted and checked.
// It is plain data: the supervisor keeps one, hands the door its part (as
// JSON, over the private socket), and replaces it whole on a reload.
type Config struct {
	StateDir   string     `json:"state_dir"` // journal, locks, logs, cache
	Log        Log        `json:"log"`
	Door       Door       `json:"door"`
	Admin      Admin      `json:"admin"`
	Supervisor Supervisor `json:"supervisor"`
	Pools      []Pool     `json:"pools"`
	Routes     []Route    `json:"routes"`
	Plugins    []Plugin   `json:"plugins"`
	OTLP       OTLP       `json:"otlp"`

	// Warnings are settings that Load found allowed and hardly meant.
	Warnings Diagnostics `json:"-"`

	// revealed returns the results of env() and file(), for Redacted. It is a
	// function so that printing a Config does not print them.
	revealed func() []string
}

// Log configures the program's own log.
type Log struct {
	Level  slog.Level `json:"level"`
	Format string     `json:"format"` // "text" or "json"
	Access bool       `json:"access"` // one line a request, without its prompt
}

// Door is the front door's part of the file.
type Door struct {
	Listen    string   `json:"listen"`  // "host:port" or ":port"
	Policy    string   `json:"policy"`  // the default for pools that name none
	Memory    Size     `json:"memory"`  // all that is held of requests and answers at once
	Metrics   string   `json:"metrics"` // "listen", "admin" or "off"
	TLS       *TLS     `json:"tls"`     // nil: plain HTTP
	HTTP2     bool     `json:"http2,omitempty"`
	Limits    Limits   `json:"limits"`
	Queue     Queue    `json:"queue"`
	Retry     Retry    `json:"retry"`
	Resume    Resume   `json:"resume"`
	Batches   Batches  `json:"batches"`
	Breaker   Breaker  `json:"breaker"`
	SlowStart Duration `json:"slow_start"` // how long a worker that joins takes to full share
	CORS      CORS     `json:"cors"`
	Keys      []Key    `json:"keys"` // none: no key is asked for
	// Objectives are the purposes that requests by way of a gateway may name.
	Objectives []Objective `json:"objectives,omitempty"`
	// BudgetTimezone is where a budget's days and months begin. Empty: UTC.
	BudgetTimezone string `json:"budget_timezone,omitempty"`
	// LogRequests writes requests to a file. Nil: it does not.
	LogRequests *LogRequests `json:"log_requests,omitempty"`
	// Peers are the admin APIs of other hosts: host:port, or a name that stands for
	// several. Doors there and here hold keys to the same limits and budgets, and
	// where no supervisor speaks for them, serve the same workers. They have the same
	// admin.token.
	Peers []string `json:"peers,omitempty"`
	// TrustedProxies are the addresses whose X-Forwarded-For is believed.
	TrustedProxies []string `json:"trusted_proxies,omitempty"`
	// ProxyProtocol are the addresses whose connections may begin with a PROXY header.
	ProxyProtocol []string `json:"proxy_protocol,omitempty"`
}

// LogRequests is a file that requests are written to, a line of JSON each.
type LogRequests struct {
	Path   string   `json:"path"`
	Keys   []string `json:"keys"`   // whose; "*" for all
	Bodies bool     `json:"bodies"` // requests' and answers' texts too
	Body   Size     `json:"body"`   // of each text at most
	Size   Size     `json:"size"`   // of a file; then the next begins
	Files  int      `json:"files"`  // that are kept
}

// TLS names the door's certificate.
type TLS struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// Limits bound the share of one client or one worker in the door.
type Limits struct {
	Body        Size     `json:"body"`
	Headers     Size     `json:"headers"`
	HeaderRead  Duration `json:"header_read"`
	BodyIdle    Duration `json:"body_idle"`
	UploadRate  Size     `json:"upload_rate"` // bytes a second of a body, at least
	FirstByte   Duration `json:"first_byte"`  // suspended while the worker makes progress
	Idle        Duration `json:"idle"`        // between two events
	Upload      Size     `json:"upload"`      // a body that passes through without being held
	Connections int      `json:"connections"`
	Streams     int      `json:"streams"` // of HTTP/2, on one connection at once
}

// Queue bounds the requests that wait at the door for room on a worker.
type Queue struct {
	MaxRequests int      `json:"max_requests"`
	MaxWait     Duration `json:"max_wait"`
}

// Retry bounds the requests that are sent again before their first event.
type Retry struct {
	Attempts int     `json:"attempts"` // tries beyond the first
	Budget   float64 `json:"budget"`   // share of requests that may be retries
}

// Batches bound /v1/files and /v1/batches.
type Batches struct {
	Concurrency int      `json:"concurrency"` // lines under way at once; 0: none are served
	Lines       int      `json:"lines"`       // of one batch
	File        Size     `json:"file"`        // one upload
	Storage     Size     `json:"storage"`     // all files; uploads beyond it are refused
	Keep        Duration `json:"keep"`        // files, and batches that have ended
	Window      Duration `json:"window"`      // the longest completion window
}

// Resume reports whether a broken stream goes on at another worker.
type Resume struct {
	Enabled bool `json:"enabled"`
}

// Breaker takes a worker out after failures in a row, for a while.
type Breaker struct {
	Failures int      `json:"failures"`
	Open     Duration `json:"open"`
}

// CORS lists the origins whose pages may call the door. None: no CORS headers.
type CORS struct {
	Origins []string `json:"origins"`
}

// Admin is where operators reach the supervisor.
type Admin struct {
	Listen string `json:"listen"` // "host:port" or "unix:///path"
	Token  Secret `json:"token"`
	// ReadToken is for those who only look: dashboards, Prometheus. Empty: none.
	ReadToken Secret `json:"read_token,omitempty"`
	Console   string `json:"console,omitempty"` // full | read_only | off
}

// Supervisor holds the bounds of all pools of one machine.
type Supervisor struct {
	Parallel int `json:"parallel"` // starts and turns at once
}

// Pool is a set of workers that serve the same.
type Pool struct {
	Name          string    `json:"name"`
	Driver        string    `json:"driver"`         // "process", "docker", "swarm", "static", "kubernetes" or "plugin:<name>"
	Policy        string    `json:"policy"`         // resolved: never empty
	Task          string    `json:"task,omitempty"` // what its workers do beside chats; empty: what they say
	Devices       string    `json:"devices"`        // "auto" or "cpu"
	GPUsPerWorker int       `json:"gpus_per_worker"`
	Engine        Engine    `json:"engine"`
	Workers       []Worker  `json:"workers"` // resolved: the count of `workers = N` is spelt out
	Rotation      Rotation  `json:"rotation"`
	Canary        *Canary   `json:"canary"` // nil: a roll-out takes worker after worker
	Scrape        Scrape    `json:"scrape"`
	Container     Container `json:"container"` // of the docker and swarm drivers
	Pods          Pods      `json:"pods,omitzero"`
	Adapters      []Adapter `json:"adapters,omitempty"` // that the workers are to have beside their model

	// Reasoning end marker, e.g. "</think>", for resuming on workers that split
	// reasoning from the answer. Empty: the answer is not split.
	ReasoningEnd string `json:"reasoning_end"`
}

// Pods are the pods of a cluster that are a pool's workers.
type Pods struct {
	Selector      string `json:"selector,omitempty"`       // of labels
	Port          int    `json:"port,omitempty"`           // beside a selector
	InferencePool string `json:"inference_pool,omitempty"` // instead of both
	Namespace     string `json:"namespace,omitempty"`      // empty: the program's own
	Rotates       bool   `json:"rotates,omitempty"`        // there is a rotation block
}

// Adapter is a LoRA adapter that a supervisor loads into each worker of a pool, and
// unloads once no block names it.
type Adapter struct {
	Name string `json:"name"` // by which clients and routes ask for it
	Path string `json:"path"` // as the worker sees it: a folder, or a name that its engine resolves
}

// Engine is the model that a worker serves, and its settings. The process driver makes the flags
// of roundhouse-worker of it, the docker driver those of `vllm serve`.
type Engine struct {
	Model           string            `json:"model"` // empty: the demonstration model
	ServedModelName []string          `json:"served_model_name"`
	Quantization    string            `json:"quantization"`
	MaxModelLen     int               `json:"max_model_len"`
	Args            []string          `json:"args"`
	Environment     map[string]string `json:"environment"`
}

// Worker is one engine of a pool.
type Worker struct {
	Name     string   `json:"name"`
	GPUs     []string `json:"gpus"`      // PCI addresses or NVIDIA UUIDs
	Port     int      `json:"port"`      // 0: a free one
	Takeover string   `json:"takeover"`  // a container that runs already
	URL      string   `json:"url"`       // static driver
	APIKey   Secret   `json:"api_key"`   // sent to the worker
	KVTokens int64    `json:"kv_tokens"` // capacity where the worker does not say; 0: unknown

	// Of this worker alone, beside the pool's or instead of them (Pool.Of).
	Environment map[string]string `json:"environment,omitempty"`
	Args        []string          `json:"args,omitempty"`
	Volumes     []string          `json:"volumes,omitempty"`
}

// Rotation says when and how the workers of a pool take their turns.
type Rotation struct {
	Schedule      string   `json:"schedule"` // five-field cron; empty: by hand only
	Timezone      string   `json:"timezone"` // IANA name; empty: the machine's
	Strategy      string   `json:"strategy"` // "in_place" or "surge"
	DrainTimeout  Duration `json:"drain_timeout"`
	ReadyTimeout  Duration `json:"ready_timeout"`
	StopGrace     Duration `json:"stop_grace"`
	MinReady      int      `json:"min_ready"` // resolved: workers-1 where left out; -1: all pods but one
	Missed        string   `json:"missed"`    // "once" or "skip"
	Jitter        Duration `json:"jitter"`
	Blackout      []string `json:"blackout"`
	AfterRequests int64    `json:"after_requests"` // 0: never
	AfterTokens   int64    `json:"after_tokens"`   // 0: never
	MemoryGrowth  float64  `json:"memory_growth"`  // share of its first hour; 0: never
	Slowdown      float64  `json:"slowdown"`       // share of its first hour; 0: never
}

// Canary is the first worker of a roll-out and how it is judged.
type Canary struct {
	Share       float64 `json:"share"`
	MinRequests int     `json:"min_requests"`
}

// ScrapeKeys are the figures that a door reads of an engine's metrics, each by the
// name that scrape { names } may give it.
var ScrapeKeys = []string{
	"kv_cache_usage", "requests_running", "requests_waiting", "cache_config", "prompt_tokens", "generation_tokens", "process_start",
	"prefix_cache_queries", "prefix_cache_hits", "gpu_prefix_cache_queries", "gpu_prefix_cache_hits",
}

// Scrape says how a worker without a status stream is read.
type Scrape struct {
	Interval Duration          `json:"interval"`
	Names    map[string]string `json:"names"` // metric names, where they differ
}

// Container has compose's names and meanings. Ulimits hold for processes as well.
type Container struct {
	Image       string            `json:"image"`
	PullPolicy  string            `json:"pull_policy"` // "missing", "always" or "never"
	Entrypoint  []string          `json:"entrypoint"`
	Command     []string          `json:"command"`
	Environment map[string]string `json:"environment"`
	Volumes     []string          `json:"volumes"`
	ShmSize     Size              `json:"shm_size"`
	Ulimits     map[string]int64  `json:"ulimits"`
	NetworkMode string            `json:"network_mode"`
	Networks    []string          `json:"networks"`
	IPC         string            `json:"ipc"`
	Init        bool              `json:"init"`
	User        string            `json:"user"`
	Labels      map[string]string `json:"labels"`

	// Containers' rights and bounds (confinement.go). Left out
	// of the JSON where they are empty, as are those below: workers are known by a hash
	// of it.
	CapAdd       []string `json:"cap_add,omitempty"`
	SecurityOpt  []string `json:"security_opt,omitempty"`
	DevicesExtra []string `json:"devices_extra,omitempty"`
	PidsLimit    int64    `json:"pids_limit,omitempty"` // 0: none
	Memory       Size     `json:"memory,omitempty"`     // 0: no limit
	ExtraHosts   []string `json:"extra_hosts,omitempty"`

	// Where a Swarm may run a worker, and the resources that it reserves.
	Constraints      []string         `json:"constraints,omitempty"`       // "node.labels.gpu == b60"
	GenericResources map[string]int64 `json:"generic_resources,omitempty"` // { "NVIDIA-GPU" = 1 }
}

// Objective is the purpose of a request, as the gateways of Kubernetes know it.
type Objective struct {
	Name string `json:"name"`
	// Priority is above 0 for requests that go first, and below 0 for requests that are
	// refused if there is no room at once.
	Priority int `json:"priority"`
}

// Route is a name that clients ask for, and its targets.
type Route struct {
	Name     string   `json:"name"`
	Aliases  []string `json:"aliases"`
	Sticky   string   `json:"sticky"` // "session", "user", "prefix" or "none"
	Targets  []Target `json:"targets"`
	Fallback string   `json:"fallback"` // a pool or model, when no target can serve
	// KeepName has answers carry the model's name that the client asked for, not
	// the target's.
	KeepName bool `json:"keep_name"`
	// Canary is a model on trial. Nil: there is none.
	Canary *RouteCanary `json:"canary,omitempty"`
}

// Target is a model and its share of a route.
type Target struct {
	Model  string `json:"model"`
	Weight int    `json:"weight"`
}

// Plugin is one program that extends the door or the supervisor.
type Plugin struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"` // "policy", "filter", "driver" or "notifier"
	Path      string `json:"path"`
	SHA256    string `json:"sha256"`
	OnFailure string `json:"on_failure"` // "closed" or "open"
	User      string `json:"user"`       // runs as; empty: as its parent
}

// OTLP is where traces go. An empty endpoint sends none.
type OTLP struct {
	Endpoint string `json:"endpoint"`
}

// Duration is a time.Duration that reads and writes as "90s".
type Duration time.Duration

// Size is a number of bytes that reads and writes as "32MiB".
type Size int64

// Secret is a value that prints as "***" everywhere but where it is used.
type Secret string

package launch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"roundhouse/worker/demo"
	"roundhouse/worker/model"
	"roundhouse/worker/parser"
	"roundhouse/worker/profile"
)

// Options are what a worker is started with. ParseServe fills them in.
type Options struct {
	Files
	Listening
	Machine
	Numbers
	Scheduling
	Answers

	Terminal      io.Writer // where a bar shows how far a load is; nil: there is none
	Speculative   Speculative
	LegacyMetrics bool
	Task          string // "": what the model is
	Runner        string // "", generate or pooling
	LogRequests   bool
	NoLogStats    bool
	LogLevel      slog.Level
	levelled      bool // by a flag
	Warnings      []string
	Adapters      Adapters
	Profiler      *profile.Settings // nil: no profiles are taken
	Sight         Sight
}

// Files is which model is read, and from where.
type Files struct {
	Model             string // folder or Hugging Face name; "": the demonstration model
	ServedNames       []string
	PackedDir         string // of packed weights; "off": none are kept
	ChatTemplate      string
	GenerationConfig  string
	Caches            []string // where models by name are looked for
	Tokenizer         string   // of another model than Model
	TokenizerRevision string   // of a tokenizer by name; "": main
	Revision          string   // of a model by name; "": main
	DownloadDir       string   // looked in before Caches
	// Config is fields of config.json that hold instead of its own.
	Config model.Overrides
	// Verify holds the weight files to their checksums before they are used.
	Verify bool
}

// Listening is how the worker is reached.
type Listening struct {
	Host             string
	Socket           string // a Unix socket in place of Host and Port
	RootPath         string // of a proxy, which stands before every route
	TLS              TLS
	CORS             CORS
	Port             int
	APIKeys          []string
	ShutdownTimeout  time.Duration
	RequestIDHeaders bool
	LoadTracking     bool
	TokenizerInfo    bool
	DevMode          bool
	BodyLimit        int64
}

// Machine is the part of the machine that the worker takes.
type Machine struct {
	Device      string
	CPUs        string
	ISA         string // of the CPU kernels; "": the best that the machine has
	Mems        string
	KVBytes     int64
	DeviceBytes int64 // of memory that the GPU has; 0: what its driver says
	Blocks      int
	GPUMask     string  // ZE_AFFINITY_MASK: which GPUs the environment shows
	GPUSelector string  // ONEAPI_DEVICE_SELECTOR, likewise
	KernelDir   string  // where the GPU driver's results and tunings are kept; "": nowhere
	Utilization float64 // share of a GPU's memory that may be taken
}

// Numbers is how weights and pages are kept.
type Numbers struct {
	HeadDType    string // of the head in quantised modes
	DType        string
	Quantization string
	KVDType      string
}

// Scheduling is how requests share steps and pages.
type Scheduling struct {
	Pace        time.Duration
	MaxModelLen int // 0: what the model has and the cache holds; -1: as long as fits
	BlockTokens int
	MaxSeqs     int
	ActiveSeqs  int  // --max-num-active-seqs; 0: as many as MaxSeqs
	Scheduled   int  // --max-num-scheduled-tokens; 0: as many as MaxBatched
	FCFS        bool // requests go in the order of their arrival
	BeyondModel bool // contexts may be longer than the model was made for
	MaxBatched  int
	PrefixCache bool
	LongPrefill int  // the most tokens of one prompt in a step; 0: no bound of its own
	NoWindow    bool // contexts no longer than a sliding window
}

// Answers is how answers are made and written.
type Answers struct {
	MaxLogprobs      int
	ToolParser       string
	AutoTools        bool
	toolsChosen      bool // ToolParser is the model's own
	ReasoningParser  string
	HideTools        bool                       // from the prompt where tool_choice is none
	CompactJSON      bool                       // no white space in answers that are held to JSON
	TemplateDefaults map[string]json.RawMessage // of chat_template_kwargs
	PromptDetails    bool
	ForceUsage       bool
	Seed             *uint64 // of requests that name none; nil: drawn at random
	ResponseRole     string  // "": assistant
	Sampling         Overrides
	TokensAsIDs      bool
}

// Speculative is --speculative-config.
type Speculative struct {
	Method string `json:"method"`
	Tokens int    `json:"num_speculative_tokens"`
	Max    int    `json:"prompt_lookup_max"`
	Min    int    `json:"prompt_lookup_min"`
}

// ParseServe reads the arguments of `roundhouse-worker serve` and the
// environment that vLLM reads.
func ParseServe(args []string, getenv func(string) string) (Options, error) {
	o := Options{
		Listening:  Listening{Host: "0.0.0.0", Port: 8000, BodyLimit: 64 << 20, CORS: CORS{Methods: []string{"*"}, Headers: []string{"*"}}},
		Machine:    Machine{Device: "cpu", Utilization: 0.92},
		Numbers:    Numbers{DType: "auto", KVDType: "auto"},
		Scheduling: Scheduling{MaxSeqs: 256, MaxBatched: 2048, PrefixCache: true},
		Files:      Files{GenerationConfig: "auto"},
		Answers:    Answers{MaxLogprobs: 20},
	}
	same, err := o.read(args)
	if err != nil {
		return o, err
	}
	if len(same) > 0 {
		o.Warnings = append(o.Warnings, "flags of vLLM's that change nothing here: "+strings.Join(same, ", "))
	}
	if err := o.environment(getenv); err != nil {
		return o, err
	}
	return o, o.check()
}

// read takes the file that --config names, and above it the arguments. It
// returns the flags that change nothing.
func (o *Options) read(args []string) (same []string, err error) {
	filed, file, rest, err := configured(args)
	if err != nil {
		return nil, err
	}
	below, err := parseFlags(o, filed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	model := o.Model
	o.Model = ""
	p, err := parseFlags(o, rest)
	switch {
	case err != nil:
		return nil, err
	case len(p.positional) > 1:
		return nil, fmt.Errorf("one model is served by one worker; found %q", p.positional)
	case len(p.positional) == 1 && o.Model != "":
		return nil, fmt.Errorf("the model is named twice: %q and --model %q", p.positional[0], o.Model)
	case len(p.positional) == 1:
		o.Model = p.positional[0]
	case o.Model == "":
		o.Model = model
	}
	for _, name := range p.same {
		if !slices.Contains(below.same, name) {
			below.same = append(below.same, name)
		}
	}
	return below.same, nil
}

func (o *Options) check() error {
	if _, err := parser.New(parser.Options{Tools: strings.TrimPrefix(o.ToolParser, noParser)}); err != nil {
		return fmt.Errorf("--tool-call-parser: %w", err)
	}
	if _, err := parser.New(parser.Options{Reasoning: strings.TrimPrefix(o.ReasoningParser, noParser)}); err != nil {
		return fmt.Errorf("--reasoning-parser: %w", err)
	}
	if o.AutoTools && o.ToolParser == noParser {
		return fmt.Errorf("--enable-auto-tool-choice requires --tool-call-parser")
	}
	if o.Scheduled > o.MaxBatched {
		return fmt.Errorf("--max-num-scheduled-tokens (%d) must be at most --max-num-batched-tokens (%d)", o.Scheduled, o.MaxBatched)
	}
	if o.ActiveSeqs > o.MaxSeqs {
		return fmt.Errorf("--max-num-active-seqs (%d) must be at most --max-num-seqs (%d)", o.ActiveSeqs, o.MaxSeqs)
	}
	o.MaxBatched, o.MaxSeqs = cmp.Or(o.Scheduled, o.MaxBatched), cmp.Or(o.ActiveSeqs, o.MaxSeqs)
	if o.MaxBatched < o.MaxSeqs {
		return fmt.Errorf("--max-num-batched-tokens (%d) must be at least --max-num-seqs (%d)", o.MaxBatched, o.MaxSeqs)
	}
	if o.Device != "cpu" && !strings.HasPrefix(o.Device, "xpu") {
		return fmt.Errorf("--device %s: want cpu or xpu", o.Device)
	}
	if err := errors.Join(o.Speculative.check(), o.TLS.check()); err != nil {
		return err
	}
	return o.Adapters.check(o.servedNames(cmp.Or(o.Model, demo.Name)))
}

// servedNames are what clients call the model, or else its own name.
func (o *Options) servedNames(name string) []string {
	if len(o.ServedNames) > 0 {
		return o.ServedNames
	}
	return []string{name}
}

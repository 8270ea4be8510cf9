package launch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"roundhouse/worker/demo"
	"roundhouse/worker/model"
	"roundhouse/worker/parser"
)

// Options are what a worker is started with. ParseServe fills them in.
type Options struct {
	Model            string // folder or Hugging Face name; "": the demonstration model
	ServedNames      []string
	Host             string
	Port             int
	Device           string
	CPUs             string
	Level            string // of the CPU kernels; "": the best that the machine has
	Mems             string
	PackedDir        string    // of packed weights; "off": none are kept
	HeadDType        string    // of the head in quantised modes
	Terminal         io.Writer // where a bar shows how far a load is; nil: there is none
	Pace             time.Duration
	DType            string
	Quantization     string
	KVDType          string
	MaxModelLen      int // 0: what the model has and the cache holds; -1: as long as fits
	BlockTokens      int
	MaxSeqs          int
	MaxBatched       int
	KVBytes          int64
	DeviceBytes      int64 // of memory that the GPU has; 0: what its driver says
	Blocks           int
	PrefixCache      bool
	ChatTemplate     string
	GenerationConfig string
	MaxLogprobs      int
	APIKeys          []string
	ShutdownTimeout  time.Duration
	ToolParser       string
	AutoTools        bool
	ReasoningParser  string
	Speculative      Speculative
	PromptDetails    bool
	ForceUsage       bool
	RequestIDHeaders bool
	LoadTracking     bool
	LegacyMetrics    bool
	DevMode          bool
	BodyLimit        int64
	Task             string   // "": what the model is
	GPUMask          string   // ZE_AFFINITY_MASK: which GPUs the environment shows
	GPUSelector      string   // ONEAPI_DEVICE_SELECTOR, likewise
	KernelDir        string   // where the GPU driver's results and tunings are kept; "": nowhere
	Utilization      float64  // share of a GPU's memory that may be taken
	Caches           []string // where models by name are looked for
	Tokenizer        string   // of another model than Model
	Revision         string   // of a model by name; "": main
	DownloadDir      string   // looked in before Caches
	Seed             *uint64  // of requests that name none; nil: drawn at random
	Runner           string   // "", generate or pooling
	LongPrefill      int      // the most tokens of one prompt in a step; 0: no bound of its own
	ResponseRole     string   // "": assistant
	Sampling         Overrides
	NoWindow         bool // contexts no longer than a sliding window
	TokensAsIDs      bool
	LogRequests      bool
	NoLogStats       bool
	LogLevel         slog.Level
	Warnings         []string
	Adapters         Adapters

	// Config is fields of config.json that hold instead of its own.
	Config model.Overrides

	// Verify holds the weight files to their checksums before they are used.
	Verify bool
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
		Host: "0.0.0.0", Port: 8000, Device: "cpu", DType: "auto", KVDType: "auto", MaxSeqs: 256, MaxBatched: 2048,
		PrefixCache: true, GenerationConfig: "auto", MaxLogprobs: 20, BodyLimit: 64 << 20, Utilization: 0.92,
	}
	p, err := parseFlags(&o, serveFlags(), args)
	if err != nil {
		return o, err
	}
	o.Warnings = p.warnings
	switch {
	case len(p.positional) > 1:
		return o, fmt.Errorf("one model is served by one worker; found %q", p.positional)
	case len(p.positional) == 1 && o.Model != "":
		return o, fmt.Errorf("the model is named twice: %q and --model %q", p.positional[0], o.Model)
	case len(p.positional) == 1:
		o.Model = p.positional[0]
	}
	if err := o.environment(getenv); err != nil {
		return o, err
	}
	return o, o.check()
}

func (o *Options) check() error {
	if _, err := parser.New(parser.Options{Tools: o.ToolParser}); err != nil {
		return fmt.Errorf("--tool-call-parser: %w", err)
	}
	if _, err := parser.New(parser.Options{Reasoning: o.ReasoningParser}); err != nil {
		return fmt.Errorf("--reasoning-parser: %w", err)
	}
	if o.AutoTools && o.ToolParser == "" {
		return fmt.Errorf("--enable-auto-tool-choice requires --tool-call-parser")
	}
	if o.MaxBatched < o.MaxSeqs {
		return fmt.Errorf("--max-num-batched-tokens (%d) must be at least --max-num-seqs (%d)", o.MaxBatched, o.MaxSeqs)
	}
	if o.Device != "cpu" && !strings.HasPrefix(o.Device, "xpu") {
		return fmt.Errorf("--device %s: want cpu or xpu", o.Device)
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

func text(at func(*Options) *string) func(*Options, string) error {
	return func(o *Options, v string) error { *at(o) = v; return nil }
}

func oneOf(at func(*Options) *string, choices ...string) func(*Options, string) error {
	return func(o *Options, v string) error {
		if !slices.Contains(choices, v) {
			return fmt.Errorf("%q is not supported; want one of %s", v, strings.Join(choices, ", "))
		}
		*at(o) = v
		return nil
	}
}

func texts(at func(*Options) *[]string) func(*Options, string) error {
	return func(o *Options, v string) error { *at(o) = append(*at(o), v); return nil }
}

func flag(at func(*Options) *bool) func(*Options, string) error {
	return func(o *Options, v string) error { *at(o) = v == "true"; return nil }
}

func number(at func(*Options) *int, least int) func(*Options, string) error {
	return func(o *Options, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least {
			return fmt.Errorf("%q; want a whole number of at least %d", v, least)
		}
		*at(o) = n
		return nil
	}
}

// onlyOne refuses parallelism that one worker does not have.
func onlyOne(instead string) func(*Options, string) error {
	return func(_ *Options, v string) error {
		if v != "1" {
			return fmt.Errorf("%s is not supported; %s", v, instead)
		}
		return nil
	}
}

// length reads a context length: a number, -1, auto, or with k, K, m, M as
// vLLM's humans write it.
func length(o *Options, v string) error {
	if v == "auto" || v == "-1" {
		o.MaxModelLen = -1
		return nil
	}
	units := map[byte]float64{'k': 1e3, 'K': 1 << 10, 'm': 1e6, 'M': 1 << 20}
	number, unit := v, 1.0
	if v != "" && units[v[len(v)-1]] != 0 {
		number, unit = v[:len(v)-1], units[v[len(v)-1]]
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n*unit < 1 || n*unit > 1<<30 {
		return fmt.Errorf("%q; want a number of tokens, -1 or auto", v)
	}
	o.MaxModelLen = int(n * unit)
	return nil
}

func speculative(o *Options, v string) error {
	s := Speculative{Max: 5, Min: 2}
	if err := json.Unmarshal([]byte(v), &s); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if s.Method != "ngram" && s.Method != "[ngram]" {
		return fmt.Errorf("the method %q is not supported; want ngram", s.Method)
	}
	if s.Tokens < 1 || s.Tokens > 16 || s.Min < 1 || s.Max < s.Min {
		return fmt.Errorf("want num_speculative_tokens from 1 to 16 and prompt_lookup_min ≤ prompt_lookup_max")
	}
	o.Speculative = s
	return nil
}

// serveFlags is the table of flags: those that do something, those that stop
// the start, and those that have no effect.
func serveFlags() []flagSpec {
	flags := []flagSpec{
		{"model", flagValue, text(func(o *Options) *string { return &o.Model })},
		{"served-model-name", flagList, texts(func(o *Options) *[]string { return &o.ServedNames })},
		{"host", flagValue, text(func(o *Options) *string { return &o.Host })},
		{"port", flagValue, number(func(o *Options) *int { return &o.Port }, 0)},
		{"device", flagValue, text(func(o *Options) *string { return &o.Device })},
		{"cpus", flagValue, text(func(o *Options) *string { return &o.CPUs })},
		{"mems", flagValue, text(func(o *Options) *string { return &o.Mems })},
		{"weights-cache", flagValue, text(func(o *Options) *string { return &o.PackedDir })},
		{"head-dtype", flagValue, oneOf(func(o *Options) *string { return &o.HeadDType }, "auto", "bfloat16")},
		{"cpu-level", flagValue, text(func(o *Options) *string { return &o.Level })},
		{"pace", flagValue, func(o *Options, v string) (err error) { o.Pace, err = time.ParseDuration(v); return err }},
		{"dtype", flagValue, oneOf(func(o *Options) *string { return &o.DType }, "auto", "bfloat16", "half", "float16", "float", "float32")},
		{"quantization", flagValue, oneOf(func(o *Options) *string { return &o.Quantization }, "auto", "none", "None", "fp8", "sym_int4", "int8", "gptq", "awq")},
		{"kv-cache-dtype", flagValue, oneOf(func(o *Options) *string { return &o.KVDType }, "auto", "bfloat16", "float32", "fp8", "fp8_e4m3", "int8", "int8_per_token_head")},
		{"max-model-len", flagValue, length},
		{"block-size", flagValue, number(func(o *Options) *int { return &o.BlockTokens }, 1)},
		{"max-num-seqs", flagValue, number(func(o *Options) *int { return &o.MaxSeqs }, 1)},
		{"max-num-batched-tokens", flagValue, number(func(o *Options) *int { return &o.MaxBatched }, 1)},
		{"num-gpu-blocks-override", flagValue, number(func(o *Options) *int { return &o.Blocks }, 1)},
		{"gpu-memory-utilization", flagValue, func(o *Options, v string) error {
			u, err := strconv.ParseFloat(v, 64)
			if err != nil || u <= 0 || u > 1 {
				return fmt.Errorf("%q: want a share above 0 and at most 1", v)
			}
			o.Utilization = u
			return nil
		}},
		{"device-memory-bytes", flagValue, func(o *Options, v string) (err error) {
			if o.DeviceBytes, err = strconv.ParseInt(v, 10, 64); err == nil && o.DeviceBytes <= 0 {
				err = fmt.Errorf("%q: want a number of bytes", v)
			}
			return err
		}},
		{"kv-cache-memory-bytes", flagValue, func(o *Options, v string) (err error) { o.KVBytes, err = strconv.ParseInt(v, 10, 64); return err }},
		{"enable-prefix-caching", flagSwitch, flag(func(o *Options) *bool { return &o.PrefixCache })},
		{"chat-template", flagValue, text(func(o *Options) *string { return &o.ChatTemplate })},
		{"generation-config", flagValue, oneOf(func(o *Options) *string { return &o.GenerationConfig }, "auto", "vllm")},
		{"max-logprobs", flagValue, func(o *Options, v string) error {
			if err := number(func(o *Options) *int { return &o.MaxLogprobs }, 0)(o, v); err != nil || o.MaxLogprobs > 64 {
				return fmt.Errorf("%q; want a number from 0 to 64", v)
			}
			return nil
		}},
		{"api-key", flagList, texts(func(o *Options) *[]string { return &o.APIKeys })},
		{"shutdown-timeout", flagValue, func(o *Options, v string) error {
			n := 0
			if err := number(func(*Options) *int { return &n }, 0)(o, v); err != nil {
				return err
			}
			o.ShutdownTimeout = time.Duration(n) * time.Second
			return nil
		}},
		{"tool-call-parser", flagValue, text(func(o *Options) *string { return &o.ToolParser })},
		{"enable-auto-tool-choice", flagSwitch, flag(func(o *Options) *bool { return &o.AutoTools })},
		{"reasoning-parser", flagValue, text(func(o *Options) *string { return &o.ReasoningParser })},
		{"speculative-config", flagValue, speculative},
		{"enable-prompt-tokens-details", flagSwitch, flag(func(o *Options) *bool { return &o.PromptDetails })},
		{"enable-force-include-usage", flagSwitch, flag(func(o *Options) *bool { return &o.ForceUsage })},
		{"enable-request-id-headers", flagSwitch, flag(func(o *Options) *bool { return &o.RequestIDHeaders })},
		{"enable-server-load-tracking", flagSwitch, flag(func(o *Options) *bool { return &o.LoadTracking })},
		{"task", flagValue, oneOf(func(o *Options) *string { return &o.Task }, "auto", "generate", "embed", "embedding", "score", "classify")},
		{"legacy-metrics", flagSwitch, flag(func(o *Options) *bool { return &o.LegacyMetrics })},
	}
	return slices.Concat(flags, adapterFlags(), compatFlags(), refusedFlags(), ignoredFlags())
}

// refusedFlags ask for what a worker does not have; the start stops, with the
// alternative.
func refusedFlags() []flagSpec {
	more := "start more workers instead: the door spreads the load over them"
	return []flagSpec{
		{"tensor-parallel-size", flagValue, onlyOne(more)}, {"tp", flagValue, onlyOne(more)},
		{"pipeline-parallel-size", flagValue, onlyOne(more)}, {"pp", flagValue, onlyOne(more)},
		{"data-parallel-size", flagValue, onlyOne(more)}, {"dp", flagValue, onlyOne(more)},
		{"q", flagValue, oneOf(func(o *Options) *string { return &o.Quantization }, "fp8", "sym_int4", "int8", "gptq", "awq")},
	}
}

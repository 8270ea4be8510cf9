package launch

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"roundhouse/kernels"
	"roundhouse/worker"
	"roundhouse/worker/api"
	"roundhouse/worker/demo"
	"roundhouse/worker/device"
	"roundhouse/worker/kv"
	"roundhouse/worker/metrics"
	"roundhouse/worker/model"
	"roundhouse/worker/profile"
	"roundhouse/worker/server"
)

// Worker is a model that can answer: an engine and its HTTP handler, not yet
// running.
type Worker struct {
	Engine *worker.Engine
	Server *server.Server

	memory *memory
	unmap  func() error // of the model's files
}

// Open loads the model that o names. Nothing is left behind when it fails.
func Open(o Options, log *slog.Logger) (_ *Worker, err error) {
	began := time.Now()
	name, folder, m, err := openModel(&o)
	if err != nil {
		return nil, err
	}
	unmap := sync.OnceValue(m.Close)
	defer func() {
		if err != nil {
			err = errors.Join(err, unmap())
		}
	}()
	reading := readTextFiles(o, name, folder, m)
	defer func() {
		if _, e := reading.wait(); e != nil {
			err = e // what else failed may have done so because of it
		}
	}()
	cfg := m.Config()
	if err := errors.Join(checkTask(&o, name, cfg.Kind), checkQuantised(&o, cfg.Quantised), withoutWindow(&o, cfg.Windows), noGuesses(&o, name, m)); err != nil {
		return nil, err
	}
	if err := errors.Join(prepare(&o, m), o.Sight.read(&o, name, folder, cfg)); err != nil {
		return nil, err
	}
	packed := packedCache(&o, m)
	be, err := openBackend(&o, packed)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = be.Close()
		}
	}()
	p, err := cachePlan(&o, m, be, device.MemoryHere())
	if err != nil {
		return nil, err
	}
	warnModel(&o, m, p.maxModelLen, log)
	mem := &memory{o: o, specs: p.specs, context: p.context(&o, cfg), log: log, room: device.MemoryHere}
	if _, grows := be.(kernels.Growing); !grows {
		mem.total = p.total
	} else if o.autoPages(m) {
		mem.specs = p.small()
	}
	exec, err := mem.compile(name, m, be, packed, reading.failed)
	if err != nil {
		return nil, err
	}
	if p, err = mem.grow(p, m); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	w, err := reading.wait()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkSegments(name, cfg, &w), mem.o.Sight.Sounds.know(name, cfg, &w), mem.o.chooseParsers(cfg, &w, log)); err != nil {
		return nil, err
	}
	log.Info("model loaded", "model", name, "architecture", cfg.Architecture, "backend", be.Name(), "weights", format(&o).String(), "head", m.HeadFormat(format(&o)).String(), "packed", cached(be), "seconds", fmt.Sprintf("%.2f", time.Since(began).Seconds()))
	log.Info(fmt.Sprintf("GPU KV cache size: %s tokens, Maximum concurrency for %s tokens per request: %.2fx", commas(p.tokens), commas(p.maxModelLen), p.concurrency))
	opened := assemble(mem, name, cfg, p, w, exec)
	if err := preload(opened.Engine, &o.Adapters); err != nil {
		return nil, err
	}
	opened.unmap = unmap
	go unmap() // what is built has no need of it, and gigabytes take a tenth of a second
	return opened, nil
}

// openModel finds the model: the demonstration model when none is named.
func openModel(o *Options) (name string, folder fs.FS, m *model.Model, err error) {
	if o.Model == "" {
		m, err = model.OpenFS(demo.FS)
		return demo.Name, demo.FS, m, err
	}
	dir, err := findModel(o.Model, o.Revision, o.Caches)
	if err != nil {
		return "", nil, nil, err
	}
	if m, err = openAs(o, dir); err == nil && o.GenerationConfig != "auto" && o.GenerationConfig != "vllm" {
		if err = m.Generation(os.DirFS(o.GenerationConfig)); err != nil {
			err = errors.Join(fmt.Errorf("--generation-config %s: %w", o.GenerationConfig, err), m.Close())
		}
	}
	return o.Model, os.DirFS(dir), m, err
}

// checkTask compares --task with what the model is.
func checkTask(o *Options, name string, kind model.Kind) error {
	want := map[string]model.Kind{
		"generate": model.Generate, "embed": model.Embed, "embedding": model.Embed, "score": model.Score, "classify": model.Score,
		"transcription": model.Generate,
	}
	if k, named := want[o.Task]; named && k != kind {
		return fmt.Errorf("--task %s: %s is a model of kind %s", o.Task, name, kind)
	}
	if o.Runner == "generate" && kind != model.Generate || o.Runner == "pooling" && kind == model.Generate {
		return fmt.Errorf("--runner %s: %s is a model of kind %s", o.Runner, name, kind)
	}
	return nil
}

// mostUnread is how many names of weights are told.
const mostUnread = 8

// warnModel tells of weights that nothing reads, and of what
// VLLM_ALLOW_LONG_MAX_MODEL_LEN has allowed.
func warnModel(o *Options, m *model.Model, served int, log *slog.Logger) {
	if names := m.Unread(); len(names) > 0 {
		log.Warn("nothing reads some weights of the model's folder: config.json may be another model's", "weights", len(names), "first", names[:min(len(names), mostUnread)])
	}
	most := m.Config().MaxPositions
	if o.MaxModelLen > most && served > most {
		log.Warn("contexts may be longer than the model was made for: behind its last position answers may lose their sense", "max_model_len", served, "positions", most)
	} else if o.MaxModelLen > served {
		log.Warn("the model has no positions beyond its last: texts are held to them", "max_model_len", served)
	}
}

// checkQuantised compares --quantization with how the checkpoint was quantised
// before, where that is all that the flag can say.
func checkQuantised(o *Options, method string) error {
	if names := []string{"compressed-tensors", "mxfp4", "gguf"}; !slices.Contains(names, o.Quantization) || o.Quantization == method {
		return nil
	}
	return fmt.Errorf("--quantization %s: the checkpoint's own is %s; leave the flag out", o.Quantization, cmp.Or(method, "none"))
}

// checkSegments refuses a model whose table of segments lacks those that its
// tokenizer gives to the texts of a pair.
func checkSegments(name string, cfg model.Config, w *textFiles) error {
	if cfg.Kind != model.Score || cfg.Segments == 0 {
		return nil
	}
	for _, t := range w.tokenizer.PairTypes() {
		if t < 0 || int(t) >= cfg.Segments {
			return fmt.Errorf("%s: tokenizer.json gives segment %d to a part of a pair of texts, and type_vocab_size in config.json is %d: pairs cannot be scored; the tokenizer is not this model's, or its post_processor is to be mended", name, t, cfg.Segments)
		}
	}
	return nil
}

// assemble puts engine and server together.
func assemble(mem *memory, name string, cfg model.Config, p plan, w textFiles, exec kernels.Executable) *Worker {
	o := &mem.o
	names := o.servedNames(name)
	var key kv.Key
	_, _ = rand.Read(key[:]) // never fails
	e := worker.NewEngine(worker.Config{
		Exec: exec, Memory: mem, Tower: o.Sight.tower(mem, cfg), Adapters: worker.AdapterSlots{Count: o.Adapters.room().Slots, Load: mem.loadAdapter}, Groups: p.groups, KVTokens: p.tokens, PrefixCache: o.PrefixCache, HashKey: key,
		Limits: worker.Limits{Tokens: o.MaxBatched, Seqs: o.MaxSeqs, Rows: o.MaxSeqs, Prefill: o.LongPrefill, Begins: begins(cfg), Arrival: o.FCFS}, MaxModelLen: p.maxModelLen,
		Vocab: cfg.Vocab, EOS: ends(o, cfg, w.tokenizer), Models: names, Generation: generation(), Pace: o.Pace,
		NGram: worker.NGram{Tokens: o.Speculative.Tokens, Max: o.Speculative.Max, Min: o.Speculative.Min},
	})
	var profiler *profile.Profiler
	if o.Profiler != nil {
		profiler = profile.New(*o.Profiler, e)
	}
	s := server.New(server.Config{
		Chat: server.Chat{
			Template: w.template, Compile: w.compiler.compile, TemplateDefaults: o.TemplateDefaults, HideTools: o.HideTools,
			ToolParser: o.toolParser(), ReasoningParser: o.reasoningParser(), Role: o.ResponseRole,
		},
		Pooling: server.Pooling{
			Kind: kindOf(cfg), Labels: w.labels, EmbedPrefix: cfg.Prompts[cfg.DefaultPrompt], Prompts: cfg.Prompts,
			Dimensions: cfg.Dimensions, Pair: pairOf(cfg), Segments: cfg.Segments > 0, Positions: cfg.Positions,
		},
		Headers: server.Headers{RequestIDHeaders: o.RequestIDHeaders, LoadTracking: o.LoadTracking},

		Engine: e, Profiler: profiler, Tokenizer: w.tokenizer, Models: names, Root: name, Version: api.Version,
		MaxModelLen: p.maxModelLen, Vocab: cfg.Vocab, BOSToken: w.bos, EOSToken: w.eos, Defaults: defaults(o, cfg),
		Media: server.Media{Sight: o.Sight.server(mem, cfg.Vision), Hearing: o.Sight.Sounds.server(cfg)}, MaxLogprobs: o.MaxLogprobs, BodyLimit: o.BodyLimit, APIKeys: o.APIKeys, CacheConfig: cacheLabels(o, p),
		LegacyMetrics: o.LegacyMetrics, PromptTokensDetails: o.PromptDetails, ForceUsage: o.ForceUsage,
		Device: deviceMetrics(mem.backend, "/sys", "/proc"), Seed: o.Seed, TokensAsIDs: o.TokensAsIDs, LogRequests: o.LogRequests,
		TokenizerInfo: o.tokenizerInfo(&w), LoadAdapters: o.Adapters.Runtime, DevMode: o.DevMode, Log: mem.log,
	})
	return &Worker{Engine: e, Server: s, memory: mem}
}

// begins is how many sequences may begin in a step; 0: as many as fit.
func begins(cfg model.Config) int {
	if cfg.Hearing != nil {
		return 1
	}
	return 0
}

// kindOf is the server's name of what the model does.
func kindOf(cfg model.Config) server.Kind {
	if cfg.Hearing != nil {
		return server.Transcribes
	}
	return kinds[cfg.Kind]
}

// kinds are the server's names of the model's kinds.
var kinds = map[model.Kind]server.Kind{model.Generate: server.Generates, model.Embed: server.Embeds, model.Score: server.Scores}

// defaults are the model's own, unless --generation-config vllm, below those of
// --override-generation-config.
func defaults(o *Options, cfg model.Config) server.Defaults {
	d := cfg.Sampling
	if o.GenerationConfig == "vllm" {
		d = model.SamplingDefaults{}
	}
	s := o.Sampling
	return server.Defaults{
		Temperature: cmp.Or(s.Temperature, d.Temperature), TopP: cmp.Or(s.TopP, d.TopP), TopK: cmp.Or(s.TopK, d.TopK),
		MinP: cmp.Or(s.MinP, d.MinP), Repetition: cmp.Or(s.Repetition, d.RepetitionPenalty),
	}
}

// cacheLabels are those of vllm:cache_config_info.
func cacheLabels(o *Options, p plan) []metrics.Label {
	full := p.groups[0]
	for _, g := range p.groups {
		if g.Window == 0 && !g.State {
			full = g
		}
	}
	return []metrics.Label{
		{Name: "block_size", Value: strconv.Itoa(full.BlockTokens)},
		{Name: "cache_dtype", Value: o.KVDType},
		{Name: "enable_prefix_caching", Value: pythonBool(o.PrefixCache)},
		{Name: "gpu_memory_utilization", Value: strconv.FormatFloat(o.Utilization, 'g', -1, 64)},
		{Name: "is_attention_free", Value: "False"},
		{Name: "kv_cache_max_concurrency", Value: fmt.Sprintf("%.4f", p.concurrency)},
		{Name: "kv_cache_memory_bytes", Value: strconv.FormatInt(p.bytes, 10)},
		{Name: "kv_cache_size_tokens", Value: strconv.Itoa(p.tokens)},
		{Name: "num_cpu_blocks", Value: "None"},
		{Name: "num_gpu_blocks", Value: strconv.Itoa(full.Blocks)},
		{Name: "num_gpu_blocks_override", Value: noneOr(o.Blocks)},
		{Name: "prefix_caching_hash_algo", Value: "sha256"},
		{Name: "sliding_window", Value: noneOr(window(p.groups))},
		{Name: "swap_space_bytes", Value: "0"},
		{Name: "user_specified_block_size", Value: pythonBool(o.BlockTokens != cpuBlockTokens)},
	}
}

func window(groups []kv.Group) int {
	for _, g := range groups {
		if g.Window > 0 {
			return g.Window
		}
	}
	return 0
}

func pythonBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

func noneOr(n int) string {
	if n == 0 {
		return "None"
	}
	return strconv.Itoa(n)
}

func generation() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Close gives the backend's memory back, after the engine has ended.
func (w *Worker) Close() error { return errors.Join(w.memory.Close(), w.unmap()) }

// Run runs the engine until ctx ends or the backend fails.
func (w *Worker) Run(ctx context.Context) error { return w.Engine.Run(ctx) }

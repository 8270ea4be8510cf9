package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"roundhouse/worker"
	"roundhouse/worker/metrics"
)

// recorder notes what was answered.
type recorder struct {
	http.ResponseWriter
	code  int
	bytes int64
	began time.Time
}

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Flush implements http.Flusher.
func (r *recorder) Flush() {
	if f, ok := r.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// httpStats are the metrics of prometheus-fastapi-instrumentator.
type httpStats struct {
	mu       sync.Mutex
	requests map[[3]string]int64 // handler, method, status class
	seconds  map[[2]string]*metrics.Histogram
	highres  *metrics.Histogram
	in, out  map[string]*[2]float64 // by handler: count, bytes
}

var highresBounds = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60}

func newHTTPStats() *httpStats {
	return &httpStats{
		requests: map[[3]string]int64{}, seconds: map[[2]string]*metrics.Histogram{},
		highres: metrics.NewHistogram(highresBounds), in: map[string]*[2]float64{}, out: map[string]*[2]float64{},
	}
}

// observe counts an answer. Only paths that exist are names, so that nobody
// can make up others.
func (h *httpStats) observe(rec *recorder, r *http.Request) {
	path := r.URL.Path
	switch path {
	case "/metrics", "/health", "/load", "/ping", "/version", "/server_info":
		return
	}
	if rec.code == http.StatusNotFound || rec.code == http.StatusMethodNotAllowed || r.Pattern == "" {
		path = "none"
	}
	class := strconv.Itoa(rec.code/100) + "xx"
	took := time.Since(rec.began).Seconds()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests[[3]string{path, r.Method, class}]++
	key := [2]string{path, r.Method}
	if h.seconds[key] == nil {
		h.seconds[key] = metrics.NewHistogram([]float64{0.1, 0.5, 1})
		h.in[path], h.out[path] = &[2]float64{}, &[2]float64{}
	}
	h.seconds[key].Observe(took)
	h.highres.Observe(took)
	h.in[path][0]++
	h.in[path][1] += float64(max(0, r.ContentLength))
	h.out[path][0]++
	h.out[path][1] += float64(rec.bytes)
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	var t metrics.Text
	st := s.cfg.Engine.Stats()
	m := exposition{&t, []metrics.Label{{Name: "engine", Value: "0"}, {Name: "model_name", Value: s.cfg.Models[0]}}}
	m.gauges(s, &st)
	m.counters(&st)
	m.histograms(&st)
	m.parsed(s)
	m.http(s.http)
	m.process(readProcess())
	if s.cfg.Device != nil {
		s.cfg.Device(&t)
	}
	w.Header().Set("Content-Type", metrics.ContentType)
	_, _ = w.Write(t.Bytes())
}

// exposition writes the engine's metrics under vLLM's names.
type exposition struct {
	*metrics.Text
	labels []metrics.Label
}

func (m exposition) with(name, value string) []metrics.Label {
	return append(append([]metrics.Label{}, m.labels...), metrics.Label{Name: name, Value: value})
}

func (m exposition) gauges(s *Server, st *worker.Snapshot) {
	m.Gauge("vllm:num_requests_running", "Number of requests in model execution batches.", m.labels, float64(st.Running))
	m.Gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", m.labels, float64(st.Waiting))
	if !s.cfg.LegacyMetrics {
		m.Family("vllm:num_requests_waiting_by_reason", "gauge", "Number of waiting requests by reason.")
		m.Sample("vllm:num_requests_waiting_by_reason", m.with("reason", "capacity"), float64(st.Waiting))
		m.Sample("vllm:num_requests_waiting_by_reason", m.with("reason", "deferred"), 0)
	}
	is := map[bool]float64{true: 1}
	m.Family("vllm:engine_sleep_state", "gauge", "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2.")
	m.Sample("vllm:engine_sleep_state", m.with("sleep_state", "awake"), is[!st.Paused])
	m.Sample("vllm:engine_sleep_state", m.with("sleep_state", "weights_offloaded"), is[st.Asleep == 1])
	m.Sample("vllm:engine_sleep_state", m.with("sleep_state", "discard_all"), is[st.Asleep == 2])
	m.Gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", m.labels, st.Usage)
	m.Gauge("vllm:gpu_cache_usage_perc", "KV-cache usage, by its older name.", m.labels, st.Usage)
	m.Gauge("vllm:cpu_cache_usage_perc", "Swapped KV-cache usage: this engine computes again and swaps nothing.", m.labels, 0)
	m.Gauge("vllm:num_requests_swapped", "Number of swapped requests: this engine swaps nothing.", m.labels, 0)
	m.Gauge("vllm:cache_config_info", "Information of the LLMEngine CacheConfig", append(append([]metrics.Label{}, s.cfg.CacheConfig...), metrics.Label{Name: "engine", Value: "0"}), 1)
	m.Gauge("vllm:lora_requests_info", "Running stats on lora requests.", []metrics.Label{
		{Name: "max_lora", Value: strconv.Itoa(s.cfg.Engine.AdapterRoom())}, {Name: "waiting_lora_adapters", Value: st.WaitingAdapters}, {Name: "running_lora_adapters", Value: st.RunningAdapters},
	}, float64(time.Now().Unix()))
}

func (m exposition) counters(st *worker.Snapshot) {
	count := func(name, help string, v int64) { m.Counter(name, help, m.labels, float64(v)) }
	count("vllm:prefix_cache_queries", "Prefix cache queries, in terms of number of queried tokens.", st.PrefixQueries)
	count("vllm:prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.", st.PrefixHits)
	count("vllm:gpu_prefix_cache_queries", "Prefix cache queries, by their older name.", st.PrefixQueries)
	count("vllm:gpu_prefix_cache_hits", "Prefix cache hits, by their older name.", st.PrefixHits)
	count("vllm:external_prefix_cache_queries", "External prefix cache queries: this engine has none.", 0)
	count("vllm:external_prefix_cache_hits", "External prefix cache hits: this engine has none.", 0)
	count("vllm:mm_cache_queries", "Multi-modal cache queries, in terms of number of queried items.", 0)
	count("vllm:mm_cache_hits", "Multi-modal cache hits, in terms of number of cached items.", 0)
	count("vllm:num_preemptions", "Cumulative number of preemption from the engine.", st.Preemptions)
	count("vllm:prompt_tokens", "Number of prefill tokens processed.", st.PromptTokens)
	m.Family("vllm:prompt_tokens_by_source_total", "counter", "Number of prompt tokens by source.")
	m.Sample("vllm:prompt_tokens_by_source_total", m.with("source", "local_compute"), float64(st.PromptTokens-st.CachedPromptTokens))
	m.Sample("vllm:prompt_tokens_by_source_total", m.with("source", "local_cache_hit"), float64(st.CachedPromptTokens))
	m.Sample("vllm:prompt_tokens_by_source_total", m.with("source", "external_kv_transfer"), 0)
	count("vllm:prompt_tokens_cached", "Number of cached prompt tokens (local + external).", st.CachedPromptTokens)
	m.Family("vllm:prompt_tokens_cached_by_source_total", "counter", "Prefix-cache hit tokens by the cache tier that supplied them.")
	for _, tier := range []string{"device", "host", "disk", "p2p", "external_unspecified"} {
		hits := 0.0
		if tier == "device" {
			hits = float64(st.PrefixHits)
		}
		m.Sample("vllm:prompt_tokens_cached_by_source_total", m.with("source", tier), hits)
	}
	count("vllm:generation_tokens", "Number of generation tokens processed.", st.GenerationTokens)
	m.Family("vllm:request_success_total", "counter", "Count of successfully processed requests.")
	for _, why := range []worker.Finish{worker.FinishStop, worker.FinishLength, worker.FinishAbort, worker.FinishError, "repetition"} {
		m.Sample("vllm:request_success_total", m.with("finished_reason", string(why)), float64(st.Finished[why]))
	}
	if st.Drafts == 0 {
		return
	}
	count("vllm:spec_decode_num_drafts", "Number of spec decoding drafts.", st.Drafts)
	count("vllm:spec_decode_num_draft_tokens", "Number of draft tokens.", st.DraftTokens)
	count("vllm:spec_decode_num_accepted_tokens", "Number of accepted tokens.", st.AcceptedTokens)
	m.Family("vllm:spec_decode_num_accepted_tokens_per_pos_total", "counter", "Accepted tokens per draft position.")
	for i, n := range st.AcceptedAt {
		m.Sample("vllm:spec_decode_num_accepted_tokens_per_pos_total", m.with("position", strconv.Itoa(i)), float64(n))
	}
}

// parsedCounts counts the answers that a tool parser has read.
type parsedCounts struct {
	mu sync.Mutex
	by map[parsedKey]int64
}

// parsedKey is what an answer is counted by: the API that asked, how it was
// answered, and whether the model called a tool.
type parsedKey struct{ api, mode, outcome string }

// The APIs as vLLM's metric names them.
var parsedAPIs = []string{"chat_completions", "responses", "other"}

// parsed counts one choice of a chat whose model may call tools of its own
// accord.
func (c *chat) parsed(api string, rd *reader) {
	if !c.auto {
		return
	}
	key := parsedKey{api, "non_streaming", "no_tool_call"}
	if c.f.Stream {
		key.mode = "streaming"
	}
	if rd.parser.Calls() > 0 {
		key.outcome = "tool_call"
	}
	p := &c.s.parsed
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil {
		p.by = map[parsedKey]int64{}
	}
	p.by[key]++
}

func (m exposition) parsed(s *Server) {
	if s.cfg.ToolParser == "" {
		return
	}
	s.parsed.mu.Lock()
	defer s.parsed.mu.Unlock()
	const name = "vllm:tool_call_parser_invocations_total"
	m.Family(name, "counter", "Number of tool call parser invocations.")
	for _, api := range parsedAPIs {
		for _, mode := range []string{"non_streaming", "streaming"} {
			for _, outcome := range []string{"no_tool_call", "tool_call"} {
				m.Sample(name, []metrics.Label{
					{Name: "model_name", Value: s.cfg.Models[0]}, {Name: "mode", Value: mode},
					{Name: "outcome", Value: outcome}, {Name: "request_type", Value: api},
				}, float64(s.parsed.by[parsedKey{api, mode, outcome}]))
			}
		}
	}
}

func (m exposition) histograms(st *worker.Snapshot) {
	for _, h := range []struct {
		name, help string
		h          *metrics.Histogram
	}{
		{"request_prompt_tokens", "Number of prefill tokens processed.", st.PromptLen},
		{"request_generation_tokens", "Number of generation tokens processed.", st.GenerationLen},
		{"iteration_tokens_total", "Histogram of number of tokens per engine_step.", st.Iteration},
		{"request_max_num_generation_tokens", "Histogram of maximum number of requested generation tokens.", st.MaxGeneration},
		{"request_params_n", "Histogram of the n request parameter.", st.ParamsN},
		{"request_params_max_tokens", "Histogram of the max_tokens request parameter.", st.MaxTokens},
		{"request_prefill_kv_computed_tokens", "Histogram of new KV tokens computed during prefill (excluding cached tokens).", st.PrefillComputed},
		{"time_to_first_token_seconds", "Histogram of time to first token in seconds.", st.TTFT},
		{"inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", st.ITL},
		{"time_per_output_token_seconds", "Histogram of inter-token latency, by its older name.", st.ITL},
		{"request_time_per_output_token_seconds", "Histogram of time_per_output_token_seconds per request.", st.TPOT},
		{"e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", st.E2E},
		{"request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", st.Queue},
		{"request_inference_time_seconds", "Histogram of time spent in RUNNING phase for request.", st.Inference},
		{"request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", st.Prefill},
		{"request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", st.Decode},
	} {
		m.Histogram("vllm:"+h.name, h.help, m.labels, h.h)
	}
}

func (m exposition) http(h *httpStats) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m.Family("http_requests_total", "counter", "Total number of requests by method, status and handler.")
	for k, n := range h.requests {
		m.Sample("http_requests_total", []metrics.Label{{Name: "handler", Value: k[0]}, {Name: "method", Value: k[1]}, {Name: "status", Value: k[2]}}, float64(n))
	}
	for _, side := range []struct {
		name, help string
		by         map[string]*[2]float64
	}{
		{"http_request_size_bytes", "Content length of incoming requests by handler.", h.in},
		{"http_response_size_bytes", "Content length of outgoing responses by handler.", h.out},
	} {
		m.Family(side.name, "summary", side.help)
		for path, v := range side.by {
			m.Sample(side.name+"_count", []metrics.Label{{Name: "handler", Value: path}}, v[0])
			m.Sample(side.name+"_sum", []metrics.Label{{Name: "handler", Value: path}}, v[1])
		}
	}
	m.Histogram("http_request_duration_highr_seconds", "Latency with many buckets but no API specific labels.", nil, h.highres)
	m.Family("http_request_duration_seconds", "histogram", "Latency with only few buckets by handler.")
	for k, hist := range h.seconds {
		m.Buckets("http_request_duration_seconds", []metrics.Label{{Name: "handler", Value: k[0]}, {Name: "method", Value: k[1]}}, hist)
	}
}

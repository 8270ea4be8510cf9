package sim

import (
	"bytes"
	"fmt"
	"strings"

	"roundhouse/balancer/sim/recorded"
)

// load is what a worker's metrics tell of it.
type load struct {
	running, waiting int
	usage            float64
	prompt, said     int64
	hits             int64 // of prompt
	preemptions      int
	blocks, block    int64
	started          float64
}

func (w *Worker) load() (l load) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l = load{
		running: int(w.Live.Load()), usage: float64(w.used) / float64(w.capacity()), started: w.started,
		prompt: w.prompt.Load(), said: w.tokens.Load(), block: blockOf, blocks: w.capacity() / blockOf,
	}
	if w.live != nil {
		w.live.mu.Lock()
		defer w.live.mu.Unlock()
		l.running, l.waiting, l.usage = w.live.batch.Counts()
		l.prompt, l.said, l.hits, l.preemptions = w.live.prompt, w.live.said, w.live.hits, w.live.batch.Preemptions
	}
	return l
}

// exposition is /metrics as vLLM writes it, with the figures of this worker.
func (w *Worker) exposition() []byte {
	l := w.load()
	counted := w.counted()
	figures := map[string]string{
		"process_start_time_seconds":   fmt.Sprintf("%.3f", l.started),
		"vllm:num_requests_running":    fmt.Sprintf("%d.0", l.running),
		"vllm:num_requests_waiting":    fmt.Sprintf("%d.0", l.waiting),
		"vllm:kv_cache_usage_perc":     fmt.Sprint(l.usage),
		"vllm:prompt_tokens_total":     fmt.Sprintf("%d.0", l.prompt),
		"vllm:generation_tokens_total": fmt.Sprintf("%d.0", l.said),
		"vllm:num_preemptions_total":   fmt.Sprintf("%d.0", l.preemptions),
	}
	if w.Caches {
		figures["vllm:prefix_cache_queries_total"], figures["vllm:prefix_cache_hits_total"] = fmt.Sprintf("%d.0", l.prompt), fmt.Sprintf("%d.0", l.hits)
	}
	var out bytes.Buffer
	was, is := fmt.Sprintf("model_name=%q", recorded.Model), fmt.Sprintf("model_name=%q", w.model())
	for line := range strings.Lines(string(recorded.Metrics())) {
		at := strings.LastIndexByte(line, ' ')
		name, _, _ := strings.Cut(line, "{")
		name, _, _ = strings.Cut(name, " ")
		v, ok := figures[name]
		if !ok {
			v, ok = counted(line, name)
		}
		switch {
		case ok:
			line = line[:at+1] + v + "\n"
		case name == "vllm:cache_config_info":
			line = fmt.Sprintf("vllm:cache_config_info{block_size=\"%d\",cache_dtype=\"auto\",enable_prefix_caching=\"True\",engine=\"0\",gpu_memory_utilization=\"0.92\",num_gpu_blocks=\"%d\"} 1.0\n", l.block, l.blocks)
		}
		out.WriteString(strings.ReplaceAll(line, was, is))
	}
	return out.Bytes()
}

// counted returns what a worker that computes as vLLM does has counted, by the lines
// of the recorded exposition.
func (w *Worker) counted() func(line, name string) (string, bool) {
	l := w.computes()
	if l == nil {
		return func(string, string) (string, bool) { return "", false }
	}
	return func(line, name string) (string, bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.tally.value(line, name)
	}
}

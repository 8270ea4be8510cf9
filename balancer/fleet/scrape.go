package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"syscall"
	"time"

	"roundhouse/balancer/beat"
	"roundhouse/balancer/ledger"
)

// scrapeNames are the metric names that a scraped worker is read by, under the
// keys that pool.scrape.names may replace. Older names come second.
var scrapeNames = map[string][]string{
	"kv_cache_usage":    {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"},
	"requests_running":  {"vllm:num_requests_running"},
	"requests_waiting":  {"vllm:num_requests_waiting"},
	"cache_config":      {"vllm:cache_config_info"},
	"prompt_tokens":     {"vllm:prompt_tokens_total", "vllm:prompt_tokens"},
	"generation_tokens": {"vllm:generation_tokens_total", "vllm:generation_tokens"},
	"process_start":     {"process_start_time_seconds"},

	"prefix_cache_queries": {"vllm:prefix_cache_queries_total", "vllm:prefix_cache_queries"},
	"prefix_cache_hits":    {"vllm:prefix_cache_hits_total", "vllm:prefix_cache_hits"},
	// Older vLLM counts blocks under these, and a while both are there.
	"gpu_prefix_cache_queries": {"vllm:gpu_prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries"},
	"gpu_prefix_cache_hits":    {"vllm:gpu_prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits"},
}

// adapterLook is how often a worker is asked for its models while an adapter is being
// loaded into it.
const adapterLook = time.Second

// gauges is what one scrape found; NaN: not there.
type gauges struct {
	usage, running, waiting, prompt, generated, start float64
	queries, hits, oldQueries, oldHits                float64
	capacity, block                                   int64
}

// scrape reads a worker that has no status stream: often while this door has
// requests there, seldom while it has none. It returns when the worker turns
// out to be one of ours: that is looked at before its first scrape, again when
// it was away or its process is another, and now and then.
func (w *Worker) scrape(ctx context.Context, f *Fleet) {
	models := time.Time{}
	wait := 50 * time.Millisecond
	for ctx.Err() == nil {
		var err error
		was := w.Instance().Identity
		if age := time.Since(models); age > 30*time.Second || len(w.ModelList()) == 0 || age > adapterLook && w.lacks() {
			if w.isOurs(ctx, f) {
				w.turnsOut(f, true)
				return
			}
			if err = w.learnModels(ctx, f); err == nil {
				models = time.Now()
			} else if w.Pool.Says() {
				err = nil // else its metrics would make it a worker that is there and serves nothing
			}
		}
		if err == nil {
			err = w.scrapeOnce(ctx, f)
		}
		if err != nil || w.Instance().Identity != was {
			models = time.Time{}
		}
		interval := w.Pool.scrapeInterval()
		switch {
		case err != nil && ctx.Err() == nil:
			f.log.Debug("a worker could not be scraped", "worker", w.ID, "error", err)
			if errors.Is(err, syscall.ECONNREFUSED) {
				f.Suspect(w, err) // nobody listens there: that is more than a report that is late
			}
			Sleep(ctx, wait)
			wait = min(2*wait, 2*time.Second)
			continue
		case f.ledger.Account(w.Acct, f.now()).InFlight == 0:
			interval = max(interval, time.Second)
		}
		wait = 50 * time.Millisecond
		Sleep(ctx, beat.Next(interval, w.part(interval)))
	}
}

// together is how many workers are asked at one instant: a door wakes once for all of
// them, and what they answer keeps it from requests for a millisecond at most.
const together = 8

// part is how long after the beat a worker is asked, where there are many.
func (w *Worker) part(interval time.Duration) time.Duration {
	return interval * time.Duration((w.Pool.before+w.Slot)/together%together) / together
}

// learnModels asks the worker which models it serves; an answer shows that it
// is there.
func (w *Worker) learnModels(ctx context.Context, f *Fleet) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	resp, err := w.ask(ctx, f, "/v1/models")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var list struct {
		Data []struct {
			ID  string `json:"id"`
			Max int64  `json:"max_model_len"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 4<<20)).Decode(&list); err != nil {
		err = fmt.Errorf("/v1/models is not a list of models: %w", err)
		w.unanswered(f, err)
		return err
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
		w.MaxLen.Store(m.Max)
	}
	w.setModels(f, names, nil)
	w.reachedNow(f, "")
	return nil
}

// scrapeOnce reads the worker's metrics once.
func (w *Worker) scrapeOnce(ctx context.Context, f *Fleet) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	began := f.now()
	resp, err := w.ask(ctx, f, "/metrics")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return err
	}
	if w.aside.due(began) {
		w.aside.take(text)
	}
	g := readGauges(text, w.Pool.scrapes.Load().Names)
	identity := ""
	if !math.IsNaN(g.start) {
		identity = strconv.FormatFloat(g.start, 'f', 2, 64)
	}
	w.reachedNow(f, identity)
	generation, known := w.Instance().Known, w.Config().KVTokens
	r := ledger.Report{At: began, Capacity: g.capacity, MaxLen: w.MaxLen.Load(), Used: -1, Own: -1, Others: -1, Running: whole(g.running), Waiting: whole(g.waiting), Progress: -1}
	if known > 0 {
		r.Capacity = known
	}
	w.capacity.Store(r.Capacity)
	if c := r.Capacity; c > 0 && g.usage >= 0 && g.usage <= 1.001 {
		r.Used = int64(g.usage * float64(c))
	}
	if p := g.prompt + g.generated; p >= 0 {
		r.Progress = int64(p)
	}
	f.ledger.Report(w.Acct, generation, r)
	w.measureHits(f, &g, generation)
	w.Pool.Pump(f)
	return nil
}

// measureHits has the worker's counters correct what is believed of its cache.
func (w *Worker) measureHits(f *Fleet, g *gauges, generation uint64) {
	queries, found, block := g.queries, g.hits, int64(1)
	if math.IsNaN(queries) || math.IsNaN(found) {
		queries, found, block = g.oldQueries, g.oldHits, g.block
	}
	if m, ok := w.Hits.Count(queries, found, block, f.ledger.Uncomputed(w.Acct)); ok {
		f.ledger.Counted(w.Acct, generation, m)
	}
}

// whole turns a gauge into a count; -1 where it is none.
func whole(x float64) int {
	if x >= 0 && x < 1e9 {
		return int(x)
	}
	return -1
}

// readGauges finds the named gauges in a Prometheus exposition. A worker with
// several engines shows each: usage is their mean, counts their sum.
func readGauges(text []byte, names map[string]string) gauges {
	nan := math.NaN()
	g := gauges{usage: nan, running: nan, waiting: nan, prompt: nan, generated: nan, start: nan, queries: nan, hits: nan, oldQueries: nan, oldHits: nan}
	sums := map[string]*float64{
		"requests_running": &g.running, "requests_waiting": &g.waiting, "prompt_tokens": &g.prompt, "generation_tokens": &g.generated,
		"prefix_cache_queries": &g.queries, "prefix_cache_hits": &g.hits,
		"gpu_prefix_cache_queries": &g.oldQueries, "gpu_prefix_cache_hits": &g.oldHits,
	}
	engines := 0.0
	for len(text) > 0 {
		line := text
		if n := bytes.IndexByte(text, '\n'); n >= 0 {
			line, text = text[:n], text[n+1:]
		} else {
			text = nil
		}
		name, labels, value, ok := sample(line)
		if !ok {
			continue
		}
		switch key := gaugeKey(name, names); key {
		case "kv_cache_usage":
			engines++
			add(&g.usage, value)
		case "process_start":
			g.start = value
		case "cache_config":
			blocks, _ := strconv.ParseInt(label(labels, "num_gpu_blocks"), 10, 64)
			size, _ := strconv.ParseInt(label(labels, "block_size"), 10, 64)
			if blocks > 0 && size > 0 {
				g.capacity += blocks * size
				g.block = size
			}
		default:
			if sum := sums[key]; sum != nil {
				add(sum, value)
			}
		}
	}
	if engines > 1 {
		g.usage /= engines
	}
	return g
}

func add(to *float64, v float64) {
	if math.IsNaN(*to) {
		*to = v
		return
	}
	*to += v
}

func gaugeKey(name []byte, names map[string]string) string {
	for key, own := range names {
		if string(name) == own {
			return key
		}
	}
	for key, known := range scrapeNames {
		if names[key] != "" {
			continue
		}
		for _, k := range known {
			if string(name) == k {
				return key
			}
		}
	}
	return ""
}

// sample splits one line of an exposition.
func sample(line []byte) (name, labels []byte, value float64, ok bool) {
	if len(line) == 0 || line[0] == '#' {
		return nil, nil, 0, false
	}
	end := bytes.LastIndexByte(line, '}')
	rest := line[end+1:]
	if end < 0 {
		sp := bytes.IndexByte(line, ' ')
		if sp < 0 {
			return nil, nil, 0, false
		}
		name, rest = line[:sp], line[sp:]
	} else {
		open := bytes.IndexByte(line, '{')
		if open < 0 || open > end {
			return nil, nil, 0, false
		}
		name, labels = line[:open], line[open+1:end]
	}
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return nil, nil, 0, false
	}
	v, err := strconv.ParseFloat(string(fields[0]), 64)
	return name, labels, v, err == nil
}

// label returns the value of one label.
func label(labels []byte, name string) string {
	at := bytes.Index(labels, []byte(name+`="`))
	if at < 0 {
		return ""
	}
	v := labels[at+len(name)+2:]
	if end := bytes.IndexByte(v, '"'); end >= 0 {
		return string(v[:end])
	}
	return ""
}

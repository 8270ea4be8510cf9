package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"roundhouse/measure/stat"
)

// Setup is what stands above the figures of a result file.
type Setup struct {
	Date        time.Time
	Backend     Backend
	BackendName string // as it was given
	Label       string
	Model       string
	Tokenizer   string
	Prompts     int
	Metadata    [][2]string
	Load        Load
	Concurrency int
	Goal        Goal
	Metrics     []string // of which percentiles are written: ttft, tpot, itl, e2el
	Ours        map[string]any
}

// Measurement is one run with its figures.
type Measurement struct {
	Load    Load
	Outcome Outcome
	Metrics Metrics
	Steady  Metrics
	Verdict Verdict
}

// Result returns the result file's object: vLLM's names and order of requests, and
// what is ours under the one key "roundhouse".
func Result(s Setup, l Measurement, detailed bool) map[string]any {
	m, o := l.Metrics, l.Outcome
	r := map[string]any{
		"date": s.Date.Format("20060102-150405"), "endpoint_type": s.BackendName, "backend": s.BackendName,
		"label": orNull(s.Label), "model_id": s.Model, "tokenizer_id": orNull(s.Tokenizer), "num_prompts": s.Prompts,
	}
	for _, kv := range s.Metadata {
		r[kv[0]] = kv[1]
	}
	r["request_rate"], r["burstiness"], r["max_concurrency"] = rateOf(s.Load.Rate), s.Load.Burstiness, nil
	if s.Concurrency > 0 {
		r["max_concurrency"] = s.Concurrency
	}
	if s.Load.RampUp != "" {
		r["ramp_up_strategy"], r["ramp_up_start_rps"], r["ramp_up_end_rps"] = s.Load.RampUp, s.Load.Start, s.Load.End
		r["rps_change_events"] = rateChanges(s.Load, o)
	}
	r["duration"], r["completed"], r["failed"] = m.Duration.Seconds(), m.Completed, m.Failed
	r["total_input_tokens"], r["request_throughput"] = m.InputTokens, m.RequestsPerSecond
	r["total_token_throughput"], r["rtfx"] = m.TokensPerSecond, 0.0 // no sound was transcribed
	if s.Backend != Embeddings {
		r["total_output_tokens"], r["output_throughput"] = m.OutputTokens, m.OutputPerSecond
		r["max_output_tokens_per_s"], r["max_concurrent_requests"] = m.PeakTokens, m.PeakConcurrency
		r["request_goodput"] = nil
		if s.Goal.Set() {
			r["request_goodput"] = m.GoodPerSecond
		}
	}
	for _, name := range s.Metrics {
		put(r, name, m.named(name), m.PercentilePoints)
	}
	if !math.IsInf(s.Load.Rate, 1) && s.Concurrency > 0 {
		put(r, "client_queue_time", m.ClientQueue, m.PercentilePoints)
		put(r, "e2el_including_client_queue", m.E2ELDue, m.PercentilePoints)
	}
	if len(o.Probes) > 0 {
		putProbes(r, o.Probes)
	}
	if detailed {
		putDetails(r, o.Samples)
	}
	r["roundhouse"] = ours(s, l)
	return r
}

// named returns a latency by vLLM's name of it.
func (m Metrics) named(name string) Stats {
	switch name {
	case "ttft":
		return m.TTFT
	case "tpot":
		return m.TPOT
	case "itl":
		return m.ITL
	case "e2el":
		return m.E2EL
	case "ttft_due":
		return m.TTFTDue
	case "e2el_due":
		return m.E2ELDue
	}
	panic("BUG: no latency is named " + name)
}

func put(r map[string]any, name string, s Stats, points []float64) {
	r["mean_"+name+"_ms"], r["median_"+name+"_ms"], r["std_"+name+"_ms"] = s.Mean, s.Median, s.Deviation
	for i, p := range points {
		r["p"+strconv.FormatFloat(p, 'g', -1, 64)+"_"+name+"_ms"] = s.Percentiles[i]
	}
}

func putProbes(r map[string]any, probes []Sample) {
	var took []float64
	for i := range probes {
		if probes[i].OK() {
			took = append(took, ms(probes[i].E2EL()))
		}
	}
	s := statsOf(took, []float64{99, 100})
	r["probe_completed"], r["probe_failed"] = len(took), len(probes)-len(took)
	r["probe_median_e2el_ms"], r["probe_p99_e2el_ms"], r["probe_max_e2el_ms"] = s.Median, s.Percentiles[0], s.Percentiles[1]
}

// putDetails writes one value a request, in seconds.
func putDetails(r map[string]any, samples []Sample) {
	n := len(samples)
	inputs, outputs := make([]int, n), make([]int, n)
	ttfts, latencies, starts, queues := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	itls, texts, errs := make([][]float64, n), make([]string, n), make([]string, n)
	for i := range samples {
		s := &samples[i]
		inputs[i], starts[i], queues[i] = s.Prompt, s.Sent.Seconds(), (s.Sent - s.Due).Seconds()
		texts[i], errs[i], itls[i] = s.Text, s.Err, []float64{}
		if s.Cut {
			errs[i] = "cut: the run was stopped"
		}
		if !s.OK() {
			continue
		}
		outputs[i], ttfts[i], latencies[i] = s.Output, s.TTFT().Seconds(), s.E2EL().Seconds()
		for _, g := range s.Gaps {
			itls[i] = append(itls[i], g.Seconds())
		}
	}
	r["input_lens"], r["output_lens"], r["ttfts"], r["itls"], r["latencies"] = inputs, outputs, ttfts, itls, latencies
	r["start_times"], r["queue_times"], r["generated_texts"], r["errors"] = starts, queues, texts, errs
}

// rateChanges are the moments at which a ramp passed a whole number of requests a second.
func rateChanges(l Load, o Outcome) []map[string]any {
	var all []map[string]any
	last := int(l.Start)
	add := func(rps int, at time.Duration) {
		all = append(all, map[string]any{"rps": rps, "timestamp": o.Began.Add(at).Format("2006-01-02T15:04:05.000000")})
	}
	add(last, 0)
	for i := range o.Samples {
		for now := int(l.rate(i, len(o.Samples))); last < now; {
			last++
			add(last, o.Samples[i].Due)
		}
	}
	return all
}

// ours is what vLLM's file has no name for.
func ours(s Setup, l Measurement) map[string]any {
	m := l.Metrics
	workers := map[string]int{}
	for i := range l.Outcome.Samples {
		if w := l.Outcome.Samples[i].Worker; w != "" {
			workers[w]++
		}
	}
	all := map[string]any{
		"definitions":  "ttft, itl, tpot and e2el as vLLM's bench serve, from sent; *_due from the due time; content: ttft to the first event with text, reasoning or a tool call",
		"verdict":      l.Verdict,
		"incomplete":   m.Cut,
		"wrong":        m.Wrong,
		"ttft_due_ms":  brief(m.TTFTDue),
		"e2el_due_ms":  brief(m.E2ELDue),
		"content_ms":   brief(m.Content),
		"lag_ms":       brief(m.ClientQueue),
		"client":       map[string]any{"processor_seconds": l.Outcome.Client.Processor.Seconds(), "share_of_cores": l.Outcome.Client.Share(), "cores": l.Outcome.Client.Cores, "collector_pause_seconds": l.Outcome.Client.Pauses.Seconds()},
		"intervals_95": intervals(m),
		"workers":      workers,
	}
	if l.Steady.Completed > 0 {
		all["steady"] = map[string]any{"duration": l.Steady.Duration.Seconds(), "completed": l.Steady.Completed, "request_throughput": l.Steady.RequestsPerSecond,
			"ttft_ms": brief(l.Steady.TTFT), "tpot_ms": brief(l.Steady.TPOT), "itl_ms": brief(l.Steady.ITL), "e2el_ms": brief(l.Steady.E2EL)}
	}
	if s.Goal.Set() {
		all["goal_ms"] = map[string]float64{"ttft": s.Goal.TTFT, "tpot": s.Goal.TPOT, "e2el": s.Goal.E2EL}
		all["good_from_due"] = m.GoodDue
	}
	for k, v := range s.Ours {
		all[k] = v
	}
	return all
}

func brief(s Stats) map[string]float64 {
	return map[string]float64{"mean": s.Mean, "p50": s.Median, "p95": s.Quantile(95), "p99": s.Quantile(99), "max": s.Quantile(100)}
}

// intervals are the 95 % intervals of the percentiles that the samples bear.
func intervals(m Metrics) map[string]stat.Interval {
	all := map[string]stat.Interval{}
	for _, name := range []string{"ttft", "tpot", "e2el"} {
		for _, p := range []float64{50, 95, 99} {
			if in, ok := stat.PercentileInterval(m.named(name).sorted, p); ok {
				all[fmt.Sprintf("p%g_%s_ms", p, name)] = in
			}
		}
	}
	return all
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func rateOf(rate float64) any {
	if math.IsInf(rate, 1) {
		return "inf"
	}
	return rate
}

// FileName is the name that vLLM gives a result file.
func FileName(s Setup) string {
	label := s.Label
	if label == "" {
		label = s.BackendName
	}
	rate := "inf"
	if !math.IsInf(s.Load.Rate, 1) {
		rate = strconv.FormatFloat(s.Load.Rate, 'g', -1, 64)
		if !strings.ContainsAny(rate, ".e") {
			rate += ".0" // as Python prints a float
		}
	}
	if s.Load.RampUp != "" {
		rate = "ramp-up-" + s.Load.RampUp + "-" + strconv.Itoa(int(s.Load.Start)) + "qps-" + strconv.Itoa(int(s.Load.End))
	}
	cap := ""
	if s.Concurrency > 0 {
		cap = "-concurrency" + strconv.Itoa(s.Concurrency)
	}
	model := s.Model[strings.LastIndexByte(s.Model, '/')+1:]
	return label + "-" + rate + "qps" + cap + "-" + model + "-" + s.Date.Format("20060102-150405") + ".json"
}

// Save writes a result file, or appends a line to one.
func Save(path string, result map[string]any, add bool) error {
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	if !add {
		return os.WriteFile(path, text, 0o644)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if at, err := file.Seek(0, 2); err != nil {
		return err
	} else if at > 0 {
		text = append([]byte{'\n'}, text...)
	}
	_, err = file.Write(text)
	return err
}

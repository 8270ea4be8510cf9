package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"roundhouse/measure/bench"
	"roundhouse/measure/data"
	"roundhouse/worker/api"
)

// benchmark is one call of the command, with everything settled that can be settled
// before the load begins.
type benchmark struct {
	*console
	flags   *benchFlags
	base    string
	client  *bench.Client
	header  http.Header
	goal    bench.Goal
	points  []float64
	setup   bench.Setup
	longest int // the model's context, as the service says; 0: it does not say
	words   *data.Words
	plan    bench.Plan // of a scenario: cap and time
}

func newBenchmark(ctx context.Context, c *console, f *benchFlags, s *pflag.FlagSet) (*benchmark, error) {
	b := &benchmark{console: c, flags: f, header: http.Header{}}
	if key, _ := c.env("OPENAI_API_KEY"); key != "" {
		b.header.Set("Authorization", "Bearer "+key)
	}
	headers, err := pairs("header", f.headers)
	if err != nil {
		return nil, err
	}
	for _, h := range headers {
		b.header.Set(h[0], h[1])
	}
	if err := b.checkFlags(s); err != nil {
		return nil, err
	}
	kind, path, err := backend(f.backend)
	if err != nil {
		return nil, err
	}
	if f.endpoint != "" {
		path = f.endpoint
	}
	b.base = strings.TrimSuffix(f.baseURL, "/")
	if b.base == "" {
		b.base = fmt.Sprintf("http://%s:%d", f.host, f.port)
	}
	b.client = bench.NewClient(b.base+path, kind, f.insecure)
	b.client.Header, b.client.Logprobs, b.client.PerToken = b.header, f.logprobs, f.itl == "tokens"
	b.client.IgnoreEOS = f.ignoreEOS || f.dataset.generatesFully() && kind != bench.Embeddings
	if b.client.Body, err = f.body(s); err != nil {
		return nil, err
	}
	if err := b.meet(ctx); err != nil {
		return nil, err
	}
	return b, b.settle(kind)
}

// backend returns the API of vLLM's name for it, and its path.
func backend(name string) (bench.Backend, string, error) {
	switch name {
	case "openai", "vllm":
		return bench.Completions, "/v1/completions", nil
	case "openai-chat":
		return bench.Chat, "/v1/chat/completions", nil
	case "openai-embeddings":
		return bench.Embeddings, "/v1/embeddings", nil
	}
	return "", "", usageError("bench: --backend %q: want openai, vllm, openai-chat or openai-embeddings", name)
}

// checkFlags names the mistakes of a command line, and applies a scenario.
func (b *benchmark) checkFlags(s *pflag.FlagSet) error {
	f := b.flags
	if f.scenario != "" {
		if err := b.scene(); err != nil {
			return err
		}
	}
	if f.dataset.name == "checked" && f.backend != "openai-chat" {
		if s.Changed("backend") {
			return usageError("bench: --dataset-name checked asks chats: leave --backend out or set openai-chat")
		}
		f.backend = "openai-chat"
	}
	if err := f.dataset.settle(); err != nil {
		return err
	}
	var err error
	if b.goal, err = f.goal(); err != nil {
		return err
	}
	for _, text := range strings.Split(f.percentiles, ",") {
		p, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || p < 0 || p > 100 {
			return usageError("bench: --metric-percentiles %q: want numbers from 0 to 100, e.g. 50,95,99", f.percentiles)
		}
		b.points = append(b.points, p)
	}
	switch {
	case f.rate <= 0 || math.IsNaN(f.rate):
		return usageError("bench: --request-rate is %g; want more than 0, or inf", f.rate)
	case f.burstiness <= 0:
		return usageError("bench: --burstiness is %g; want more than 0", f.burstiness)
	case f.prompts < 1:
		return usageError("bench: --num-prompts is %d; want at least 1", f.prompts)
	case f.runs < 1:
		return usageError("bench: --runs is %d; want at least 1", f.runs)
	case s.Changed("max-concurrency") && f.concurrency < 1:
		return usageError("bench: --max-concurrency is %d; want at least 1", f.concurrency)
	case f.rampUp != "" && f.rampUp != "linear" && f.rampUp != "exponential":
		return usageError("bench: --ramp-up-strategy %q: want linear or exponential", f.rampUp)
	case f.rampUp != "" && (f.rampStart <= 0 || f.rampEnd < f.rampStart || !math.IsInf(f.rate, 1)):
		return usageError("bench: a ramp goes from --ramp-up-start-rps (more than 0) up to --ramp-up-end-rps, without --request-rate")
	case f.itl != "events" && f.itl != "tokens":
		return usageError("bench: --itl %q: want events or tokens", f.itl)
	case f.adapterOrder != "random" && f.adapterOrder != "round-robin":
		return usageError("bench: --lora-assignment %q: want random or round-robin", f.adapterOrder)
	case f.sweep && (f.scenario != "" || f.dataset.timed() || f.rampUp != ""):
		return usageError("bench: --sweep sets the rates itself: it goes with neither --scenario, --trace nor a ramp")
	case f.duration > 0 && s.Changed("num-prompts"):
		return usageError("bench: --duration and --num-prompts both say when to end; give one")
	case f.duration > 0 && math.IsInf(f.rate, 1) && f.concurrency == 0 && !f.dataset.timed():
		return usageError("bench: --duration wants a --request-rate or a --max-concurrency")
	}
	return nil
}

// scenes are concurrency, least requests, prompt and answer of the scenarios.
var scenes = map[string][4]int{
	"low": {1, 50, 512, 256}, "saturation": {64, 500, 512, 256}, "long-prompts": {8, 50, 8192, 256},
	"long-outputs": {16, 50, 256, 4096}, "burst": {128, 200, 512, 256},
}

// scene applies a scenario: a closed loop over random data for a minute at least.
func (b *benchmark) scene() error {
	s, ok := scenes[b.flags.scenario]
	if !ok {
		return usageError("bench: --scenario %q: want low, saturation, long-prompts, long-outputs or burst", b.flags.scenario)
	}
	b.flags.concurrency, b.flags.prompts = s[0], s[1]
	b.flags.dataset.lengths.Input, b.flags.dataset.lengths.Output = s[2], s[3]
	if b.flags.duration == 0 {
		b.flags.duration = time.Minute
	}
	return nil
}

// meet asks the service what it is: its model, and the context of it.
func (b *benchmark) meet(ctx context.Context) error {
	deadline := time.Now().Add(time.Duration(b.flags.readySeconds) * time.Second)
	for {
		err := b.models(ctx)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (b *benchmark) models(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+"/v1/models", nil)
	if err != nil {
		return usageError("bench: %w", err)
	}
	req.Header = b.header.Clone()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return &codedError{exitUnreachable, fmt.Errorf("bench: nothing answers at %s: %w", b.base, err)}
	}
	defer res.Body.Close()
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			Root    string `json:"root"`
			Longest int    `json:"max_model_len"`
		} `json:"data"`
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		if b.flags.model != "" {
			return nil // a service without this list has a model all the same
		}
		return fmt.Errorf("bench: %s/v1/models answers %d: %.200s; name the model with --model", b.base, res.StatusCode, text)
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("bench: %s/v1/models: %w", b.base, err)
	}
	name := b.flags.servedModel
	if name == "" {
		name = b.flags.model
	}
	for _, m := range list.Data {
		if name == "" || m.ID == name {
			b.client.Model, b.longest = m.ID, m.Longest
			break
		}
	}
	if b.client.Model == "" && name != "" {
		b.client.Model = name
	}
	if b.client.Model == "" {
		return fmt.Errorf("bench: %s/v1/models lists no model; name one with --model", b.base)
	}
	return nil
}

// settle fills in what stands above the figures.
func (b *benchmark) settle(kind bench.Backend) error {
	f := b.flags
	if f.servedModel != "" {
		b.client.Model = f.servedModel
	} else if b.client.Model == "" {
		b.client.Model = f.model
	}
	model := f.model
	if model == "" {
		model = b.client.Model
	}
	if f.scenario != "" && b.longest > 0 { // leave room for the template and special tokens
		l := &f.dataset.lengths
		room := b.longest * 9 / 10
		l.Output = min(l.Output, room/2)
		if cut := min(l.Input, room-l.Output); cut < l.Input {
			fmt.Fprintf(b.err, "the context is %d tokens: prompts have %d instead of %d\n", b.longest, cut, l.Input)
			l.Input = cut
		}
	}
	metadata, err := pairs("metadata", f.metadata)
	if err != nil {
		return err
	}
	names := f.percentileOf
	if names == "" {
		names = "ttft,tpot,itl"
		if kind == bench.Embeddings {
			names = "e2el"
		}
	}
	var metrics []string
	for _, name := range strings.Split(names, ",") {
		switch name = strings.TrimSpace(name); name {
		case "ttft", "tpot", "itl", "e2el":
			metrics = append(metrics, name)
		default:
			return usageError("bench: --percentile-metrics %q: want ttft, tpot, itl, e2el", names)
		}
	}
	b.setup = bench.Setup{
		Date: time.Now(), Backend: kind, BackendName: f.backend, Label: f.label, Model: model, Tokenizer: f.tokenizer,
		Metadata: metadata, Concurrency: f.concurrency, Goal: b.goal, Metrics: metrics,
		Load: bench.Load{Rate: f.rate, Burstiness: f.burstiness, RampUp: f.rampUp, Start: f.rampStart, End: f.rampEnd},
		Ours: map[string]any{"version": api.Version, "url": b.base},
	}
	return nil
}

// run measures, prints, and writes what was asked for. Ctrl-C ends the load; what
// was measured until then is reported.
func (b *benchmark) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var all []bench.Measurement
	page := bench.Page{}
	if b.flags.profile {
		b.poke(ctx, "/start_profile")
		defer b.poke(context.WithoutCancel(ctx), "/stop_profile")
	}
	if b.flags.sweep {
		runs, rate, err := b.sweep(ctx)
		if err != nil {
			return err
		}
		page.Sweep, page.Rate = runs, rate
		for _, l := range runs {
			if l.Load.Rate == rate || len(all) == 0 {
				all = []bench.Measurement{l.Measurement}
			}
		}
		b.setup.Load = all[0].Load
		b.setup.Prompts = len(all[0].Outcome.Samples)
		b.setup.Ours["sweep"] = sweepResult(runs, rate)
	} else {
		for i := range b.flags.runs {
			l, err := b.measure(ctx, b.setup.Load, b.flags.prompts, b.flags.seed+uint64(i)*1_000_003)
			if err != nil {
				return err
			}
			all = append(all, l)
			if ctx.Err() != nil {
				break
			}
		}
	}
	for i := range all {
		if b.flags.runs == 1 || i == len(all)-1 {
			bench.Print(b.out, b.setup, all[i])
		}
	}
	bench.PrintRuns(b.out, all)
	page.Setup, page.Runs, page.Facts = b.setup, all, b.facts()
	if err := b.write(all, page); err != nil {
		return err
	}
	last := all[len(all)-1]
	if last.Metrics.Completed == 0 {
		return &codedError{exitFailed, errSaid}
	}
	return nil
}

// measure runs one load.
func (b *benchmark) measure(ctx context.Context, load bench.Load, n int, seed uint64) (bench.Measurement, error) {
	f := b.flags
	if f.duration > 0 && !math.IsInf(load.Rate, 1) && !f.sweep {
		n = int(math.Ceil(load.Rate*f.duration.Seconds())) + 1
	}
	requests, err := f.dataset.requests(ctx, n, b.longest, b.countedWords, bench.Random(seed, "prompts"))
	if err != nil {
		return bench.Measurement{}, fmt.Errorf("bench: %w", err)
	}
	if f.dataset.name == "checked" {
		if requests, err = b.answered(ctx, requests); err != nil {
			return bench.Measurement{}, err
		}
	}
	b.spread(requests, bench.Random(seed, "adapters").IntN)
	p := bench.Plan{Requests: requests, Concurrency: f.concurrency, Duration: f.duration, ProbeRate: f.probeRate}
	if f.dataset.timed() {
		for i := range requests {
			p.Due = append(p.Due, requests[i].At)
		}
	} else {
		p.Due = bench.Schedule(len(requests), load, bench.Random(seed, "arrivals"))
	}
	if p.WarmUp, err = b.warmUp(ctx, load, seed); err != nil {
		return bench.Measurement{}, err
	}
	b.setup.Prompts = len(requests)
	o := bench.Run(ctx, b.client, p, b.progress(load))
	if !f.quiet && isTerminal(b.err) {
		fmt.Fprintln(b.err)
	}
	l := bench.Measurement{Load: load, Outcome: o, Metrics: bench.Measure(o.Samples, o.Duration, b.goal, b.points)}
	if window, took := bench.Steady(o.Samples); took > 0 {
		l.Steady = bench.Measure(window, took, b.goal, b.points)
	}
	l.Verdict = bench.Judge(p, load, o, l.Metrics)
	return l, nil
}

// warmUp makes the requests that come before a run: as many as will be under way
// at once, of other words than the measured ones.
func (b *benchmark) warmUp(ctx context.Context, load bench.Load, seed uint64) ([]bench.Request, error) {
	n := b.flags.warmUps
	if n < 0 {
		n = min(64, max(2, b.flags.concurrency))
		if b.flags.concurrency == 0 && math.IsInf(load.Rate, 1) {
			n = min(64, max(2, b.flags.prompts))
		}
	}
	if n == 0 {
		return nil, nil
	}
	set := b.flags.dataset
	if set.trace != "" || set.path != "" || set.name == "checked" { // a file's requests are the measured ones
		set = benchData{name: "random", lengths: data.Lengths{Input: 64, Output: 16}}
	}
	return set.requests(ctx, n, b.longest, b.countedWords, bench.Random(seed, "warm-up"))
}

// answered keeps the questions that the model answers rightly in peace: a wrong
// answer under load is then the service's fault.
func (b *benchmark) answered(ctx context.Context, asked []bench.Request) ([]bench.Request, error) {
	few := asked[:min(len(asked), 40)]
	o := bench.Run(ctx, b.client, bench.Plan{Requests: few, Due: make([]time.Duration, len(few)), Concurrency: 2}, nil)
	var right []bench.Request
	for i := range o.Samples {
		if s := &o.Samples[i]; s.OK() && !s.Wrong {
			right = append(right, few[i])
		}
	}
	if len(right) < (len(few)+1)/2 {
		return nil, fmt.Errorf("bench: %s answers %d of %d counting questions rightly; --dataset-name checked is for the demonstration model", b.client.Model, len(right), len(few))
	}
	return data.Take(right, len(asked), true, bench.Random(b.flags.seed, "questions")), nil
}

// spread gives requests to the adapters.
func (b *benchmark) spread(requests []bench.Request, draw func(int) int) {
	all := b.flags.adapters
	for i := range requests {
		switch {
		case len(all) == 0:
		case b.flags.adapterOrder == "round-robin":
			requests[i].Model = all[i%len(all)]
		default:
			requests[i].Model = all[draw(len(all))]
		}
	}
}

// countedWords counts the service's words once.
func (b *benchmark) countedWords(ctx context.Context) (*data.Words, error) {
	if b.words != nil {
		return b.words, nil
	}
	c := &data.Counter{Base: b.base, Model: b.client.Model, Header: b.header, HTTP: http.DefaultClient}
	w, err := data.CountWords(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("counting words at %s: %w", b.base, err)
	}
	b.words = w
	return w, nil
}

// poke asks the service to begin or end its profile.
func (b *benchmark) poke(ctx context.Context, path string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+path, nil)
	if err != nil {
		fmt.Fprintf(b.err, "bench: --profile: %v\n", err)
		return
	}
	req.Header = b.header.Clone()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Fprintf(b.err, "bench: --profile: %v\n", err)
		return
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		fmt.Fprintf(b.err, "bench: --profile: %s answers %d\n", path, res.StatusCode)
	}
}

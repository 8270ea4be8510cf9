package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"roundhouse/measure/bench"
)

// benchFlags are vLLM's flags of `bench serve`, with its names and defaults, and ours.
type benchFlags struct {
	benchService
	benchLoad
	benchOutput

	metadata, goodput, adapters []string
	adapterOrder                string
	logprobs                    int
	ignoreEOS, quiet, profile   bool
	extraBody, templateKwargs   string
	sampling                    map[string]*float64
	topK                        int
	dataset                     benchData
}

// benchService is whom the benchmark asks: a group of flags.
type benchService struct {
	backend, baseURL, host, endpoint string
	port                             int
	model, servedModel, tokenizer    string
	headers                          []string
	readySeconds                     int
	insecure                         bool
}

// benchLoad is when requests are sent, and how many.
type benchLoad struct {
	rate, burstiness, probeRate   float64
	concurrency, prompts, warmUps int
	seed                          uint64
	rampUp                        string
	rampStart, rampEnd            float64
	sweep, compare                bool
	target                        float64
	runs, sweepRequests           int
	sweepTime, duration           time.Duration
}

// benchOutput is what is written of a run.
type benchOutput struct {
	percentileOf, percentiles          string
	save, detailed, appended, timeline bool
	resultDir, resultFile, label       string
	scenario, slo, itl, report         string
}

// benchCommand measures any service that speaks OpenAI's API.
func benchCommand(c *console) *cobra.Command {
	f := &benchFlags{}
	help := false
	cmd := &cobra.Command{
		Use:   "bench [flags] | bench --compare A.json B.json",
		Short: "Measure a service: latencies, throughput, goodput, the rate that it bears",
		Long: `Measure a service that speaks OpenAI's API: the door, one engine, anyone's. The
flags, the definitions and the result file are those of vLLM's bench serve;
beside them stand the latencies from when each request was due, and a verdict on
the run itself. docs/measure.md tells how to read it.

  roundhouse bench --dataset-name random --random-input-len 512 --request-rate 4
  roundhouse bench --scenario burst --report burst.html
  roundhouse bench --sweep --slo chat --report capacity.html
  roundhouse bench --compare before.json after.json`,
		GroupID:            groupLook,
		DisableFlagParsing: true, // vLLM's are read as argparse does: _ for -, shortened names, lists
		RunE: func(cmd *cobra.Command, args []string) error {
			expanded, err := likeArgparse(cmd.Flags(), args)
			if err == nil {
				err = cmd.Flags().Parse(expanded)
			}
			if err != nil {
				return usageError("bench: %w", err)
			}
			if help {
				return cmd.Help()
			}
			if f.compare {
				return c.compare(cmd.Flags().Args())
			}
			if rest := cmd.Flags().Args(); len(rest) > 0 {
				return usageError("bench: %q is no flag; files stand behind --dataset-path, --trace or --compare", rest[0])
			}
			b, err := newBenchmark(cmd.Context(), c, f, cmd.Flags())
			if err != nil {
				return err
			}
			defer b.client.Close()
			return b.run(cmd.Context())
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVarP(&help, "help", "h", false, "this text")
	return cmd
}

// add declares the flags: first vLLM's, then ours.
func (f *benchFlags) add(s *pflag.FlagSet) {
	s.SortFlags = false
	s.StringVar(&f.backend, "backend", "openai", "openai (or vllm), openai-chat, openai-embeddings")
	s.StringVar(&f.baseURL, "base-url", "", "the service, without a path; goes before --host and --port")
	s.StringVar(&f.host, "host", "127.0.0.1", "the service's host")
	s.IntVar(&f.port, "port", 8000, "the service's port")
	s.StringVar(&f.endpoint, "endpoint", "", "the path; the backend's own by default")
	s.StringSliceVar(&f.headers, "header", nil, "KEY=VALUE for every request")
	s.StringVar(&f.model, "model", "", "the model; the first of /v1/models by default")
	s.StringVar(&f.servedModel, "served-model-name", "", "the name that requests carry, if it is another")
	s.StringVar(&f.tokenizer, "tokenizer", "", "written into the result; the service's own /tokenize counts")
	s.Uint64Var(&f.seed, "seed", 0, "of prompts and arrivals")
	s.IntVar(&f.prompts, "num-prompts", 1000, "how many requests")
	s.Float64Var(&f.rate, "request-rate", math.Inf(1), "requests a second; inf: all at once")
	s.Float64Var(&f.burstiness, "burstiness", 1, "1: Poisson; less: bursts; inf: even gaps")
	s.IntVar(&f.concurrency, "max-concurrency", 0, "requests at once, at most; 0: any number")
	s.StringVar(&f.rampUp, "ramp-up-strategy", "", "linear or exponential, from --ramp-up-start-rps to --ramp-up-end-rps")
	s.Float64Var(&f.rampStart, "ramp-up-start-rps", 0, "where a ramp begins")
	s.Float64Var(&f.rampEnd, "ramp-up-end-rps", 0, "where a ramp ends")
	s.IntVar(&f.warmUps, "num-warmups", -1, "requests before, in no figure; by default as many as go at once, 2 to 64")
	s.IntVar(&f.readySeconds, "ready-check-timeout-sec", 0, "wait so long for a first answer")
	s.Float64Var(&f.probeRate, "probe-request-rate", 0, "one-token requests a second beside the load, past its cap")
	s.BoolVar(&f.ignoreEOS, "ignore-eos", false, "generate to the asked length (implied by random data)")
	s.IntVar(&f.logprobs, "logprobs", -1, "ask for so many log-probabilities")
	f.sampling = map[string]*float64{}
	for _, name := range []string{"temperature", "top-p", "min-p", "frequency-penalty", "presence-penalty", "repetition-penalty"} {
		f.sampling[name] = s.Float64(name, 0, "sent if given")
	}
	s.IntVar(&f.topK, "top-k", 0, "sent if given")
	s.StringVar(&f.extraBody, "extra-body", "", "a JSON object whose fields every request carries")
	s.StringVar(&f.templateKwargs, "chat-template-kwargs", "", "a JSON object for the chat template")
	s.StringSliceVar(&f.adapters, "lora-modules", nil, "names of adapters to spread requests over")
	s.StringVar(&f.adapterOrder, "lora-assignment", "random", "random or round-robin")
	s.StringVar(&f.percentileOf, "percentile-metrics", "", "ttft,tpot,itl (the default), e2el")
	s.StringVar(&f.percentiles, "metric-percentiles", "99", "which percentiles, e.g. 50,95,99")
	s.StringSliceVar(&f.goodput, "goodput", nil, "ttft:MS tpot:MS e2el:MS: what a request must meet to be good")
	s.BoolVar(&f.save, "save-result", false, "write the result file")
	s.BoolVar(&f.detailed, "save-detailed", false, "with each request in it")
	s.BoolVar(&f.appended, "append-result", false, "append a line to the result file instead")
	s.StringVar(&f.resultDir, "result-dir", "", "where to write it")
	s.StringVar(&f.resultFile, "result-filename", "", "under which name")
	s.StringVar(&f.label, "label", "", "begins the result file's name")
	s.StringSliceVar(&f.metadata, "metadata", nil, "KEY=VALUE for the result file")
	s.BoolVar(&f.timeline, "plot-timeline", false, "write the report beside the result file, as .timeline.html")
	s.BoolVar(&f.profile, "profile", false, "POST /start_profile before and /stop_profile after")
	s.BoolVar(&f.insecure, "insecure", false, "do not check the service's certificate")
	s.BoolVar(&f.quiet, "disable-tqdm", false, "no progress line")
	f.dataset.add(s)
	f.addOurs(s)
}

// addOurs declares the flags that vLLM's bench serve does not have.
func (f *benchFlags) addOurs(s *pflag.FlagSet) {
	s.StringVar(&f.scenario, "scenario", "", "low, saturation, long-prompts, long-outputs or burst instead of a rate and a data set")
	s.StringVar(&f.slo, "slo", "", "a service level instead of --goodput: chat, completion, rag, agent or batch")
	s.DurationVar(&f.duration, "duration", 0, "how long to send, e.g. 60s, instead of --num-prompts")
	s.IntVar(&f.runs, "runs", 1, "runs of the same, for intervals")
	s.StringVar(&f.itl, "itl", "events", "events: gaps between events, as vLLM; tokens: divided by the tokens of each event")
	s.BoolVar(&f.sweep, "sweep", false, "find the greatest rate that meets the goal: double, bisect, run again")
	s.Float64Var(&f.target, "target", 0.99, "the share of requests that must meet the goal in a sweep")
	s.IntVar(&f.sweepRequests, "sweep-requests", 300, "requests of each run of a sweep, at least")
	s.DurationVar(&f.sweepTime, "sweep-time", time.Minute, "length of each run of a sweep, at least")
	s.StringVar(&f.report, "report", "", "write an HTML page with plots")
	s.BoolVar(&f.compare, "compare", false, "set two result files side by side: --compare A.json B.json")
}

// lists are flags that take several values, each a word of its own.
var lists = []string{"header", "metadata", "goodput", "lora-modules"}

// likeArgparse writes a command line of vLLM's as pflag takes it: _ is -, a name may
// be shortened to what no other flag begins with, and a list's values become flags
// of their own.
func likeArgparse(s *pflag.FlagSet, args []string) ([]string, error) {
	var out []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if !strings.HasPrefix(arg, "--") || arg == "--" {
			out = append(out, arg)
			continue
		}
		name, value, has := strings.Cut(arg[2:], "=")
		flag, err := unshortened(s, strings.ReplaceAll(name, "_", "-"))
		if err != nil {
			return nil, err
		}
		if slices.Contains(lists, flag) && !has {
			for i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				out = append(out, "--"+flag+"="+args[i])
			}
			continue
		}
		if has {
			flag += "=" + value
		}
		out = append(out, "--"+flag)
	}
	return out, nil
}

// unshortened returns the one flag that a name stands for.
func unshortened(s *pflag.FlagSet, name string) (string, error) {
	if s.Lookup(name) != nil {
		return name, nil
	}
	var all []string
	s.VisitAll(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, name) {
			all = append(all, f.Name)
		}
	})
	switch len(all) {
	case 1:
		return all[0], nil
	case 0:
		return "", fmt.Errorf("there is no flag --%s", name)
	}
	return "", fmt.Errorf("--%s is short for several flags: --%s", name, strings.Join(all, ", --"))
}

// goal is what --goodput or --slo asks.
func (f *benchFlags) goal() (bench.Goal, error) {
	var g bench.Goal
	if f.slo != "" {
		preset, ok := bench.Goals[f.slo]
		if !ok {
			return g, usageError("bench: --slo %q: want chat, completion, rag, agent or batch", f.slo)
		}
		g = preset
	}
	for _, one := range f.goodput {
		name, text, _ := strings.Cut(one, ":")
		ms, err := strconv.ParseFloat(text, 64)
		if err != nil || ms <= 0 {
			return g, usageError("bench: --goodput %q: want ttft:MS, tpot:MS or e2el:MS", one)
		}
		switch name {
		case "ttft":
			g.TTFT = ms
		case "tpot":
			g.TPOT = ms
		case "e2el":
			g.E2EL = ms
		default:
			return g, usageError("bench: --goodput %q: want ttft:MS, tpot:MS or e2el:MS", one)
		}
	}
	return g, nil
}

// body are the fields that every request carries.
func (f *benchFlags) body(s *pflag.FlagSet) (map[string]any, error) {
	all := map[string]any{}
	for name, value := range f.sampling {
		if s.Changed(name) {
			all[strings.ReplaceAll(name, "-", "_")] = *value
		}
	}
	if s.Changed("top-k") {
		all["top_k"] = f.topK
	}
	if f.templateKwargs != "" {
		var kwargs map[string]any
		if err := json.Unmarshal([]byte(f.templateKwargs), &kwargs); err != nil {
			return nil, usageError("bench: --chat-template-kwargs: want a JSON object: %w", err)
		}
		all["chat_template_kwargs"] = kwargs
	}
	if f.extraBody != "" {
		if err := json.Unmarshal([]byte(f.extraBody), &all); err != nil {
			return nil, usageError("bench: --extra-body: want a JSON object: %w", err)
		}
	}
	return all, nil
}

// pairs splits KEY=VALUE.
func pairs(flag string, all []string) ([][2]string, error) {
	var out [][2]string
	for _, one := range all {
		key, value, ok := strings.Cut(one, "=")
		if !ok {
			return nil, usageError("bench: --%s %q: want KEY=VALUE", flag, one)
		}
		out = append(out, [2]string{strings.TrimSpace(key), strings.TrimSpace(value)})
	}
	return out, nil
}

// compare sets two result files side by side.
func (c *console) compare(paths []string) error {
	if len(paths) != 2 {
		return usageError("bench: --compare wants two result files, not %d", len(paths))
	}
	a, err := bench.ReadFile(paths[0])
	if err != nil {
		return err
	}
	b, err := bench.ReadFile(paths[1])
	if err != nil {
		return err
	}
	bench.Compare(c.out, a, b)
	return nil
}

package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/spf13/pflag"

	"roundhouse/measure/bench"
	"roundhouse/measure/data"
)

// benchData are the flags of data sets: vLLM's names and defaults, and --trace.
type benchData struct {
	name, path              string
	input, output           int
	lengths                 data.Lengths
	repetition              data.Repetition
	customOutput, shareGPT  int
	block                   int
	unit                    float64
	selfTimed, noOversample bool
	trace                   string
	speed                   float64
}

func (d *benchData) add(s *pflag.FlagSet) {
	s.StringVar(&d.name, "dataset-name", "random", "random, prefix_repetition, custom, sharegpt, timed_trace, checked (questions to the demonstration model, answers judged)")
	s.StringVar(&d.path, "dataset-path", "", "the data set's file")
	s.BoolVar(&d.noOversample, "no-oversample", false, "do not use a file's requests again if it has too few")
	s.IntVar(&d.input, "input-len", 0, "tokens of a prompt, whatever the data set")
	s.IntVar(&d.output, "output-len", 0, "tokens of an answer, whatever the data set")
	s.IntVar(&d.lengths.Input, "random-input-len", 1024, "tokens of a random prompt")
	s.IntVar(&d.lengths.Output, "random-output-len", 128, "tokens of its answer")
	s.Float64Var(&d.lengths.Range, "random-range-ratio", 0, "lengths vary by this share")
	s.IntVar(&d.lengths.Prefix, "random-prefix-len", 0, "tokens that all random prompts begin with")
	s.IntVar(&d.repetition.Prefix, "prefix-repetition-prefix-len", 256, "tokens of a shared prefix")
	s.IntVar(&d.repetition.Suffix, "prefix-repetition-suffix-len", 256, "tokens behind it")
	s.IntVar(&d.repetition.Prefixes, "prefix-repetition-num-prefixes", 10, "how many prefixes")
	s.IntVar(&d.repetition.Output, "prefix-repetition-output-len", 128, "tokens of an answer")
	s.IntVar(&d.customOutput, "custom-output-len", 256, "tokens of an answer; -1: the file's output_tokens")
	s.IntVar(&d.shareGPT, "sharegpt-output-len", 0, "tokens of an answer; 0: as long as the file's")
	s.IntVar(&d.block, "timed-trace-chunk-hash-size", 16, "tokens of a block of a trace (the trace of Mooncake: 512)")
	s.Float64Var(&d.unit, "timed-trace-sec-multiplier", 1, "what a trace's timestamp is multiplied by to give seconds (Mooncake: 0.001)")
	s.BoolVar(&d.selfTimed, "self-timed", true, "send a trace's requests at its times")
	s.StringVar(&d.trace, "trace", "", "a recorded trace, Azure's CSV or Mooncake's JSON lines, with its own blocks and times")
	s.Float64Var(&d.speed, "speed", 1, "replay a trace so many times faster")
	// Known, and of no effect here: the service counts tokens itself.
	for _, name := range []string{"trust-remote-code", "skip-tokenizer-init", "disable-shuffle", "skip-chat-template"} {
		s.Bool(name, false, "taken, changes nothing")
		s.Lookup(name).Hidden = true
	}
	s.String("tokenizer-mode", "auto", "taken, changes nothing")
	s.Lookup("tokenizer-mode").Hidden = true
}

// timed reports whether the data brings its own times.
func (d *benchData) timed() bool {
	return d.trace != "" || d.name == "timed_trace" && d.selfTimed
}

// generatesFully reports whether answers go to their asked length by default.
func (d *benchData) generatesFully() bool {
	return d.trace != "" || d.name == "random" || d.name == "timed_trace"
}

// settle applies what holds for every data set, and names the mistakes.
func (d *benchData) settle() error {
	if d.input > 0 {
		d.lengths.Input = d.input
	}
	if d.output > 0 {
		d.lengths.Output, d.repetition.Output, d.customOutput, d.shareGPT = d.output, d.output, d.output, d.output
	}
	wantsFile := d.name == "custom" || d.name == "sharegpt" || d.name == "timed_trace"
	switch {
	case d.trace != "" && d.speed <= 0:
		return usageError("bench: --speed is %g; want more than 0", d.speed)
	case d.trace != "":
		return nil
	case wantsFile && d.path == "":
		return usageError("bench: --dataset-name %s wants its file: --dataset-path FILE", d.name)
	case !wantsFile && d.path != "":
		return usageError("bench: --dataset-name %s makes its requests itself; --dataset-path is for custom, sharegpt and timed_trace", d.name)
	case !wantsFile && d.name != "random" && d.name != "prefix_repetition" && d.name != "checked":
		return usageError("bench: --dataset-name %q: want random, prefix_repetition, custom, sharegpt, timed_trace or checked", d.name)
	}
	return nil
}

// requests makes n requests. words gives the service's words when they are needed.
func (d *benchData) requests(ctx context.Context, n, longest int, words func(context.Context) (*data.Words, error), rng *rand.Rand) ([]bench.Request, error) {
	var w *data.Words
	if d.name == "random" || d.name == "prefix_repetition" || d.name == "timed_trace" || d.trace != "" {
		var err error
		if w, err = words(ctx); err != nil {
			return nil, err
		}
	}
	var all []bench.Request
	var err error
	switch {
	case d.trace != "":
		return d.replay(d.trace, n, 512, time.Millisecond, longest, w, rng)
	case d.name == "timed_trace":
		return d.replay(d.path, n, d.block, time.Duration(d.unit*float64(time.Second)), longest, w, rng)
	case d.name == "prefix_repetition":
		return data.PrefixRepetition(n, d.repetition, w, rng)
	case d.name == "checked":
		return data.Checked(n, rng), nil
	case d.name == "custom":
		all, err = data.Custom(d.path, d.customOutput)
	case d.name == "sharegpt":
		all, err = data.ShareGPT(d.path, d.shareGPT)
	default:
		return data.Random(n, d.lengths, w, rng)
	}
	return data.Take(all, n, !d.noOversample, rng), err
}

func (d *benchData) replay(path string, n, block int, unit time.Duration, longest int, w *data.Words, rng *rand.Rand) ([]bench.Request, error) {
	rows, err := data.ReadTrace(path, unit)
	if err != nil {
		return nil, err
	}
	return data.Replay(rows[:min(n, len(rows))], d.speed, block, longest, w, rng), nil
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"roundhouse/kernels"
	"roundhouse/worker/demo"
	"roundhouse/worker/model"
)

// plan prints whether a model fits into memory, in each format, and how much
// it can then serve. It reads headers alone.
func plan(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("plan", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("model", "", "the model's `folder`; without it, the built-in demonstration model")
	memory := flags.String("memory", "", "`bytes` that there are: 24GiB, 16GB")
	o := model.PlanOptions{Format: kernels.FormatBF16}
	flags.Float64Var(&o.Utilisation, "gpu-memory-utilization", 0.92, "`share` of the memory to use")
	flags.IntVar(&o.MaxModelLen, "max-model-len", 0, "longest sequence in `tokens`; 0: the model's own; -1: as long as fits")
	flags.IntVar(&o.BlockTokens, "block-size", 32, "`tokens` of a KV block")
	flags.IntVar(&o.Limits.Tokens, "max-num-batched-tokens", 2048, "`tokens` of a step")
	flags.IntVar(&o.Limits.Seqs, "max-num-seqs", 256, "`sequences` of a step")
	kv := flags.String("kv-cache-dtype", "bfloat16", "`type` of keys and values: bfloat16, float32, fp8_e4m3")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	err := planFlags(&o, flags, *memory, *kv)
	if err != nil {
		fmt.Fprintln(stderr, "roundhouse-worker plan:", err)
		return 2
	}
	m, err := openModel(*dir)
	if err == nil {
		defer m.Close()
		err = m.Report(stdout, o)
	}
	if err != nil {
		fmt.Fprintln(stderr, "roundhouse-worker plan:", err)
		return 1
	}
	return 0
}

// planFlags fills in what flag has no type for.
func planFlags(o *model.PlanOptions, flags *flag.FlagSet, memory, kv string) (err error) {
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag; the model's folder is --model", flags.Arg(0))
	}
	if o.Memory, err = parseBytes(memory); err != nil {
		return fmt.Errorf("--memory: %w", err)
	}
	if !(o.Utilisation > 0 && o.Utilisation <= 1) {
		return fmt.Errorf("--gpu-memory-utilization is %g; want more than 0 and at most 1", o.Utilisation)
	}
	types := map[string]kernels.DType{"bfloat16": kernels.BF16, "float32": kernels.F32, "fp8_e4m3": kernels.F8E4M3, "fp8": kernels.F8E4M3, "auto": kernels.BF16}
	t, ok := types[kv]
	if !ok {
		return fmt.Errorf("--kv-cache-dtype is %q; want bfloat16, float32 or fp8_e4m3", kv)
	}
	o.KVType, o.Limits.Rows = t, o.Limits.Seqs
	return nil
}

func openModel(dir string) (*model.Model, error) {
	if dir == "" {
		return model.OpenFS(demo.FS)
	}
	return model.Open(dir)
}

// parseBytes reads a number of bytes with a unit: GiB is 2^30, GB is 10^9.
func parseBytes(s string) (int64, error) {
	if s == "" {
		return 0, errors.New("it is missing; say for example --memory 24GiB")
	}
	number := strings.TrimRight(s, "KMGTiB")
	units := map[string]float64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
	unit, ok := units[s[len(number):]]
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(n > 0 && n*unit < 1<<60) {
		return 0, fmt.Errorf("%q is no number of bytes; say for example 24GiB", s)
	}
	return int64(n * unit), nil
}

// models prints the table of architectures.
func models(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		fmt.Fprintf(stderr, "roundhouse-worker models: %q: it takes no arguments\n", args[0])
		return 2
	}
	if err := model.WriteTable(stdout); err != nil {
		fmt.Fprintln(stderr, "roundhouse-worker models:", err)
		return 1
	}
	return 0
}

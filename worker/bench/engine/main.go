// Command engine measures our engine beside llama.cpp's llama-bench: a model of
// random weights and a published shape, the same weights for both, in turns, as
// one table of ratios.
//
//	go run ./worker/bench/engine -llama PATH-OF-llama-bench
//
// Without -llama it measures ours alone.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
	"roundhouse/worker/bench"
	"roundhouse/worker/model"
)

func main() {
	log.SetFlags(0)
	var c config
	flag.StringVar(&c.llama, "llama", "", "llama-bench; empty: ours alone")
	flag.StringVar(&c.shape, "shape", "qwen3-0.6b", "shape of the model")
	flag.StringVar(&c.dir, "dir", filepath.Join(os.TempDir(), "roundhouse-bench"), "where the models are made and kept")
	flag.IntVar(&c.threads, "threads", 1, "threads of both")
	flag.IntVar(&c.prompt, "p", 512, "tokens of the prompt")
	flag.IntVar(&c.generate, "n", 128, "tokens to generate")
	flag.IntVar(&c.rounds, "rounds", 3, "turns; the median counts")
	flag.Parse()
	if err := run(&c); err != nil {
		log.Fatal(err)
	}
}

type config struct {
	llama, shape, dir                 string
	threads, prompt, generate, rounds int
}

// speed is tokens a second of a prompt and of generation.
type speed struct{ prompt, generate float64 }

func run(c *config) error {
	shape, err := bench.Find(c.shape)
	if err != nil {
		return err
	}
	dir := filepath.Join(c.dir, shape.Name)
	if err := makeOnce(filepath.Join(dir, "config.json"), func() error { return shape.WriteSafetensors(dir) }); err != nil {
		return err
	}
	fmt.Printf("%s, %d thread(s), prompt of %d, %d tokens generated, median of %d turns\n", shape.Name, c.threads, c.prompt, c.generate, c.rounds)
	fmt.Printf("%-10s %12s %12s %12s %12s %9s %9s\n", "", "ours pp t/s", "ours tg t/s", "llama pp", "llama tg", "pp ratio", "tg ratio")
	for _, f := range []struct {
		name   string
		format kernels.Format
		four   bool
	}{{"bf16", kernels.FormatBF16, false}, {"int4", kernels.FormatInt4, true}} {
		gguf := filepath.Join(dir, f.name+".gguf")
		if c.llama != "" {
			if err := makeOnce(gguf, func() error { return shape.WriteGGUF(gguf, f.four) }); err != nil {
				return err
			}
		}
		var our, their []speed
		o, err := newOurs(c, dir, f.format)
		if err != nil {
			return err
		}
		for range c.rounds {
			s, err := o.measure(c)
			if err != nil {
				return err
			}
			our = append(our, s)
			if c.llama != "" {
				if s, err = llama(c, gguf); err != nil {
					return err
				}
				their = append(their, s)
			}
		}
		if err := o.backend.Close(); err != nil {
			return err
		}
		a := median(our)
		if c.llama == "" {
			fmt.Printf("%-10s %12.1f %12.1f\n", f.name, a.prompt, a.generate)
			continue
		}
		b := median(their)
		fmt.Printf("%-10s %12.1f %12.1f %12.1f %12.1f %9.2f %9.2f\n", f.name, a.prompt, a.generate, b.prompt, b.generate, a.prompt/b.prompt, a.generate/b.generate)
	}
	return nil
}

// makeOnce makes a file that is not there yet.
func makeOnce(path string, create func() error) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	return create()
}

func median(all []speed) (m speed) {
	if len(all) == 0 {
		return m
	}
	middle := func(of func(speed) float64) float64 {
		var x []float64
		for _, s := range all {
			x = append(x, of(s))
		}
		slices.Sort(x)
		return x[len(x)/2]
	}
	return speed{middle(func(s speed) float64 { return s.prompt }), middle(func(s speed) float64 { return s.generate })}
}

// ours is our engine with the model loaded.
type ours struct {
	backend *cpu.Backend
	runner  *bench.Runner
}

func newOurs(c *config, dir string, format kernels.Format) (*ours, error) {
	m, err := model.Open(dir)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	b, err := cpu.New(cpu.Options{Threads: c.threads})
	if err != nil {
		return nil, err
	}
	start := time.Now()
	r, err := bench.NewRunner(b, m, format, kernels.BF16, c.prompt+c.generate)
	if err != nil {
		return nil, err
	}
	fmt.Printf("# %v: %s, %d MiB, loaded in %.1f s\n", format, b.Name(), b.Bytes()>>20, time.Since(start).Seconds())
	return &ours{b, r}, nil
}

// measure is as llama-bench does it: a prompt of random tokens, and tokens one
// after another from an empty context.
func (o *ours) measure(c *config) (s speed, err error) {
	ids := make([]int32, c.prompt)
	for i := range ids {
		ids[i] = int32(i * 7 % 1000)
	}
	start := time.Now()
	if _, err := o.runner.Run(ids, 0, false); err != nil {
		return s, err
	}
	s.prompt = float64(c.prompt) / time.Since(start).Seconds()
	start = time.Now()
	for i := range c.generate {
		if _, err := o.runner.Run(ids[i%len(ids):][:1], i, false); err != nil {
			return s, err
		}
	}
	s.generate = float64(c.generate) / time.Since(start).Seconds()
	return s, nil
}

// llama runs llama-bench once.
func llama(c *config, gguf string) (s speed, err error) {
	out, err := exec.Command(c.llama, "-m", gguf, "-p", strconv.Itoa(c.prompt), "-n", strconv.Itoa(c.generate),
		"-t", strconv.Itoa(c.threads), "-r", "1", "-o", "json").Output()
	if err != nil {
		return s, fmt.Errorf("%s: %w", c.llama, err)
	}
	var rows []struct {
		Prompt   int     `json:"n_prompt"`
		Generate int     `json:"n_gen"`
		Speed    float64 `json:"avg_ts"`
	}
	if err := json.Unmarshal(out, &rows); err != nil {
		return s, fmt.Errorf("what %s printed: %w", c.llama, err)
	}
	for _, r := range rows {
		if r.Prompt > 0 {
			s.prompt = r.Speed
		} else {
			s.generate = r.Speed
		}
	}
	return s, nil
}

// Command engine measures our engine beside llama.cpp: models of random weights
// and published shapes, the same weights for both, in turns, as one table of
// ratios with the goals beside. llama-bench and llama-server come from
// worker/bench/llama; where they are not there ours is measured alone.
//
//	make bench-engine
//	make bench-engine SHORT=1
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
	"roundhouse/worker/bench"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) > 1 && os.Args[1] == "child" {
		if err := child(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	var c config
	var shapes string
	short := flag.Bool("short", false, "small models and few turns: under a minute")
	flag.StringVar(&c.llama, "llama", filepath.Join("build", "llama", "bin"), "folder of llama-bench and llama-server")
	flag.StringVar(&c.worker, "worker", filepath.Join("bin", "roundhouse-worker"), "our worker")
	flag.StringVar(&shapes, "shapes", "", "shapes of the models; empty: qwen2.5-0.5b,qwen3-0.6b,llama-3.2-1b, or a small one where -short is given")
	flag.StringVar(&c.dir, "dir", filepath.Join("build", "bench"), "where the models are made and kept")
	flag.StringVar(&c.isa, "isa", "", "instruction set of our kernels; empty: the best of this machine")
	flag.IntVar(&c.threads, "threads", runtime.NumCPU(), "threads of both")
	flag.IntVar(&c.prompt, "p", 512, "tokens of the prompt")
	flag.IntVar(&c.generate, "n", 128, "tokens to generate")
	flag.IntVar(&c.streams, "streams", 16, "concurrent streams")
	flag.IntVar(&c.rounds, "rounds", 5, "turns; the median counts")
	flag.IntVar(&c.pairs, "pairs", 9, "turns of two workers against one")
	flag.StringVar(&c.profile, "profile", "", "write CPU profiles of ours alone to this name plus the form, for go tool pprof -top")
	flag.BoolVar(&c.cold, "cold", false, "start servers without having free memory at hand first")
	flag.StringVar(&c.only, "only", "", "parts: alone,streams,pair,batch,start; empty: all")
	flag.Parse()
	usual := "qwen2.5-0.5b,qwen3-0.6b,llama-3.2-1b"
	if *short {
		usual, c.prompt, c.generate, c.rounds, c.pairs = "short", 128, 24, 1, 3
	}
	if shapes == "" {
		shapes = usual
	}
	if err := run(&c, strings.Split(shapes, ",")); err != nil {
		log.Fatal(err)
	}
}

type config struct {
	llama, worker, dir, isa, only, profile     string
	threads, prompt, generate, streams, rounds int
	pairs                                      int
	cold                                       bool
}

// form is one way to keep the weights.
type form struct {
	name   string
	format kernels.Format
	flag   string // of our worker
	four   bool   // of the GGUF file
	same   bool   // ours reads the GGUF file too, which only part alone does
}

var forms = []form{
	{"bf16", kernels.FormatBF16, "none", false, false},
	{"int4", kernels.FormatInt4, "sym_int4", true, false},
	{"q4_0", kernels.FormatInt4, "auto", true, true},
}

func (c *config) does(part string) bool { return c.only == "" || strings.Contains(c.only, part) }

func run(c *config, shapes []string) error {
	if _, err := os.Stat(filepath.Join(c.llama, "llama-bench")); err != nil {
		fmt.Println("llama.cpp is not built: ours alone. worker/bench/llama builds it.")
		c.llama = ""
	}
	fmt.Printf("%d thread(s); a bare loop reads %.1f GB/s on them\n", c.threads, cpu.NewReader(c.threads).Rate(bareLoop)/1e9)
	for _, name := range shapes {
		shape, err := bench.Find(name)
		if err != nil {
			return err
		}
		if err := runShape(c, shape); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// runShape measures one shape and prints its table.
func runShape(c *config, shape *bench.Shape) error {
	dir := filepath.Join(c.dir, shape.Name)
	if err := makeOnce(filepath.Join(dir, "config.json"), func() error { return shape.WriteSafetensors(dir) }); err != nil {
		return err
	}
	fmt.Printf("\n%s: medians of %d turns\n", shape.Name, c.rounds)
	t := newTable(os.Stdout)
	for _, f := range forms {
		gguf := filepath.Join(dir, map[bool]string{false: "bf16.gguf", true: "int4.gguf"}[f.four])
		if err := makeOnce(gguf, func() error { return writeWhole(gguf, func(to string) error { return shape.WriteGGUF(to, f.four) }) }); err != nil {
			return err
		}
		m := measured{config: c, shape: shape, form: f, dir: dir, gguf: gguf, table: t}
		for _, part := range []struct {
			name string
			run  func(*measured) error
		}{{"alone", (*measured).alone}, {"streams", (*measured).together}, {"pair", (*measured).pair}, {"batch", (*measured).batch}, {"start", (*measured).starts}} {
			if !c.does(part.name) || f.same && part.name != "alone" {
				continue
			}
			if err := part.run(&m); err != nil {
				return errors.Join(fmt.Errorf("%s, %s: %w", f.name, part.name, err), t.flush())
			}
		}
	}
	return t.flush()
}

// measured is one shape in one form.
type measured struct {
	*config
	form
	shape     *bench.Shape
	dir, gguf string
	table     *table
}

// makeOnce makes a file that is not there yet.
func makeOnce(path string, create func() error) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	return create()
}

// writeWhole gives a file its name once it is whole.
func writeWhole(path string, write func(path string) error) error {
	if err := write(path + ".new"); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

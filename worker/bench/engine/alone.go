package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"time"

	"roundhouse/kernels"
	"roundhouse/kernels/cpu"
	"roundhouse/worker/bench"
	"roundhouse/worker/model"
)

// alone compares one prompt and one stream: our kernels driven as llama-bench
// drives its own, with nothing else around.
func (m *measured) alone() error {
	from := m.dir
	if m.same {
		from = m.gguf
	}
	o, err := newOurs(from, m.format, cpu.Options{Threads: m.threads, ISA: m.isa}, m.prompt+m.generate)
	if err != nil {
		return err
	}
	defer o.backend.Close()
	if m.profile != "" {
		end, err := profile(m.profile + "-" + m.shape.Name + "-" + m.name)
		if err != nil {
			return err
		}
		defer end()
	}
	loop := cpu.NewReader(m.threads)
	var prompt, decode, read, theirPrompt, theirDecode []float64
	for range m.rounds {
		read = append(read, loop.Rate(bareLoop))
		p, d, err := o.measure(m.prompt, m.generate)
		if err != nil {
			return err
		}
		prompt, decode = append(prompt, p), append(decode, d)
		if m.llama == "" {
			continue
		}
		if p, d, err = m.llamaBench(); err != nil {
			return err
		}
		theirPrompt, theirDecode = append(theirPrompt, p), append(theirDecode, d)
	}
	peak, err := cpu.Peak(m.isa, m.format, m.threads)
	if err != nil {
		return err
	}
	ours, theirs := float64(o.weights), float64(m.shape.GGUFBytes(m.four))
	tg, pp := median(decode), median(prompt)
	m.table.add(line{name: fmt.Sprintf("%s tg%d", m.name, m.generate), unit: "t/s", ours: tg, theirs: median(theirDecode), ratio: over(tg, median(theirDecode)), goal: "1.0",
		beside: fmt.Sprintf("%.0f and %.0f MB a token; ours reads at %.0f %% of the bare loop (goal 80 %%)", ours/1e6, theirs/1e6, 100*tg*ours/median(read))})
	m.table.add(line{name: fmt.Sprintf("%s pp%d", m.name, m.prompt), unit: "t/s", ours: pp, theirs: median(theirPrompt), ratio: over(pp, median(theirPrompt)), goal: map[bool]string{true: "1.5", false: "5 (with AMX)"}[m.four],
		beside: fmt.Sprintf("%.0f %% of the kernel's peak (goal 35 %%)", 100*pp*o.operations/peak)})
	return nil
}

// bareLoop is how long a bare loop reads, which is about what decoding takes.
const bareLoop = time.Second

// profile writes down where the time goes until end is called.
func profile(path string) (end func(), err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

// ours is our engine with a model loaded.
type ours struct {
	backend    *cpu.Backend
	runner     *bench.Runner
	weights    int64   // bytes that a token reads
	operations float64 // a token of a prompt, of its linears
}

// newOurs loads a folder or a GGUF file.
func newOurs(path string, format kernels.Format, options cpu.Options, tokens int) (*ours, error) {
	read := model.Open
	if filepath.Ext(path) == ".gguf" {
		read = model.OpenGGUF
	}
	m, err := read(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	m.FineGroups()
	b, err := cpu.New(options)
	if err != nil {
		return nil, err
	}
	r, err := bench.NewRunner(b, m, format, kernels.BF16, tokens)
	if err != nil {
		return nil, fmt.Errorf("%w (closing: %v)", err, b.Close())
	}
	cfg := m.Config()
	// All linears but the head, which sees one row of a prompt.
	elements := (m.WeightBytes(kernels.FormatF32) - 4*int64(cfg.Vocab)*int64(cfg.Hidden)) / 4
	return &ours{b, r, m.WeightBytes(format), 2 * float64(elements)}, nil
}

// measure is as llama-bench does it: a prompt of random tokens, and tokens one
// after another from an empty context; both in tokens a second.
func (o *ours) measure(prompt, generate int) (pp, tg float64, err error) {
	ids := make([]int32, prompt)
	for i := range ids {
		ids[i] = int32(i * 7 % 1000)
	}
	start := time.Now()
	if _, err := o.runner.Run(ids, 0, false); err != nil {
		return 0, 0, err
	}
	pp = float64(prompt) / time.Since(start).Seconds()
	tg, err = o.decode(generate)
	return pp, tg, err
}

// decode is tokens a second, one after the other from an empty context.
func (o *ours) decode(n int) (float64, error) {
	start := time.Now()
	for i := range n {
		if _, err := o.runner.Run([]int32{int32(i * 7 % 1000)}, i, false); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(start).Seconds(), nil
}

// llamaBench runs llama-bench once.
func (m *measured) llamaBench() (pp, tg float64, err error) {
	path := filepath.Join(m.llama, "llama-bench")
	out, err := exec.Command(path, "-m", m.gguf, "-p", strconv.Itoa(m.prompt), "-n", strconv.Itoa(m.generate),
		"-t", strconv.Itoa(m.threads), "-r", "1", "-o", "json").Output()
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", path, err)
	}
	var rows []struct {
		Prompt int     `json:"n_prompt"`
		Speed  float64 `json:"avg_ts"`
	}
	if err := json.Unmarshal(out, &rows); err != nil {
		return 0, 0, fmt.Errorf("what %s printed: %w", path, err)
	}
	for _, r := range rows {
		if r.Prompt > 0 {
			pp = r.Speed
		} else {
			tg = r.Speed
		}
	}
	return pp, tg, nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"roundhouse/balancer/sim"
	"roundhouse/measure/bench"
	"roundhouse/measure/data"
	"roundhouse/measure/tune"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/process"
)

// run starts an engine with settings, has it serve the traffic, and ends it.
func (t *tuning) run(ctx context.Context, round int, s tune.Settings) (tune.Score, error) {
	fmt.Fprintf(t.c.err, "turn %d of %d: %s\n", round+1, t.runs, s)
	port, err := freePort()
	if err != nil {
		return tune.Score{}, err
	}
	cmd, err := t.command(ctx, port, s)
	if err != nil {
		return tune.Score{}, err
	}
	log := &lastBytes{most: 4 << 10}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // vLLM has helpers
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return tune.Score{}, err
	}
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait() // killed below
		close(gone)
	}()
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may be gone
		<-gone
	}()
	base := "http://127.0.0.1:" + strconv.Itoa(port)
	if err := awaitEngine(ctx, base, gone); err != nil {
		return tune.Score{}, fmt.Errorf("%w; it wrote:\n%s", err, log)
	}
	return t.load(ctx, base, round)
}

// freePort is a port that nobody has just now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// command is the engine's: the operator's own, or that of the process driver. Flags that
// come later stand above the earlier ones.
func (t *tuning) command(ctx context.Context, port int, s tune.Settings) (*exec.Cmd, error) {
	settings := []string{"--max-num-seqs", strconv.Itoa(s.Seqs), "--max-num-batched-tokens", strconv.Itoa(s.Tokens)}
	if t.engine != "" {
		text := strings.NewReplacer("{port}", strconv.Itoa(port), "{args}", strings.Join(settings, " ")).Replace(t.engine)
		return exec.CommandContext(ctx, "sh", "-c", "exec "+text), nil
	}
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := append(process.Arguments(driver.Spec{Engine: t.pool.Engine}, port), settings...)
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(own), "roundhouse-worker"), args...)
	cmd.Env = os.Environ()
	for k, v := range t.pool.Engine.Environment {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd, nil
}

// awaitEngine returns once an engine answers, or is gone.
func awaitEngine(ctx context.Context, base string, gone <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, engineReady)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/health", nil)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-gone:
			return errors.New("the engine has ended")
		case <-ctx.Done():
			return fmt.Errorf("the engine is not ready: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// load sends the traffic of one worker, the same of each round to all settings.
func (t *tuning) load(ctx context.Context, base string, round int) (tune.Score, error) {
	client := bench.NewClient(base+"/v1/completions", bench.Completions, false)
	defer client.Close()
	client.Logprobs, client.IgnoreEOS, client.Header = -1, true, http.Header{}
	key, _ := t.c.env("OPENAI_API_KEY")
	if own := argument(t.pool.Engine.Args, "api-key"); own != "" {
		key = own
	}
	if key != "" {
		client.Header.Set("Authorization", "Bearer "+key)
	}
	model, err := firstModel(ctx, base, client.Header)
	if err != nil {
		return tune.Score{}, err
	}
	client.Model = model
	words, err := data.CountWords(ctx, &data.Counter{Base: base, Model: model, Header: client.Header, HTTP: http.DefaultClient})
	if err != nil {
		return tune.Score{}, err
	}
	rng := rand.New(rand.NewPCG(t.seed, uint64(round)))
	plan := bench.Plan{}
	for _, j := range t.jobs {
		plan.Requests = append(plan.Requests, request(&j, words, rng))
		plan.Due = append(plan.Due, time.Duration(j.At*float64(time.Second)))
	}
	for range 2 {
		plan.WarmUp = append(plan.WarmUp, request(&t.jobs[0], words, rng))
	}
	o := bench.Run(ctx, client, plan, nil)
	if o.Stopped {
		return tune.Score{}, ctx.Err()
	}
	m := bench.Measure(o.Samples, o.Duration, t.goal, []float64{50})
	if m.Completed == 0 {
		return tune.Score{}, fmt.Errorf("none of %d requests was answered: %s", len(o.Samples), o.Samples[0].Err)
	}
	return tune.Score{Goodput: float64(m.GoodDue) / o.Duration.Seconds(), Throughput: m.OutputPerSecond}, nil
}

func request(j *sim.Job, words *data.Words, rng *rand.Rand) bench.Request {
	text, n := words.Text(j.Prompt, rng)
	return bench.Request{Prompt: text, PromptTokens: n, Output: j.Output}
}

// firstModel is the model that an engine serves.
func firstModel(ctx context.Context, base string, header http.Header) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/models", nil)
	if err != nil {
		return "", err
	}
	req.Header = header.Clone()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 16<<20)).Decode(&list); err != nil || len(list.Data) == 0 {
		return "", fmt.Errorf("/v1/models answers %s and no list of models", res.Status)
	}
	return list.Data[0].ID, nil
}

// lastBytes keeps the end of what is written to it.
type lastBytes struct {
	most int
	mu   sync.Mutex
	data []byte
}

func (l *lastBytes) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.data = append(l.data, p...)
	l.data = l.data[max(0, len(l.data)-l.most):]
	return len(p), nil
}

func (l *lastBytes) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.data)
}

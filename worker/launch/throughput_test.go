package launch

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"roundhouse/worker"
	"roundhouse/worker/kv"
	"roundhouse/worker/workertest"
)

// TestThroughputLine holds vLLM's line to the letter: every ten seconds while
// there is something to say, once more when all has ended, and then no more.
func TestThroughputLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := []kv.Group{{Blocks: 200, BlockTokens: 10}}
		e := worker.NewEngine(worker.Config{
			Exec: workertest.New(64, groups), Groups: groups, PrefixCache: true, Limits: worker.Limits{Tokens: 500, Seqs: 8, Rows: 8},
			MaxModelLen: 1000, Vocab: 64, // no step ends at the tenth second
			Pace: 70 * time.Millisecond,
		})
		ctx, stop := context.WithCancel(context.Background())
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		go func() { _ = e.Run(ctx) }()
		go logThroughput(ctx, e, log)
		synctest.Wait() // its first look is before the request
		s, err := e.Submit(worker.Request{Tokens: make([]int32, 200), Params: worker.Params{N: 1, MaxTokens: 200, TopP: 1, Repetition: 1, Logprobs: -1, PromptLogprobs: -1}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.Close()
		stop()
		synctest.Wait()
		line := func(prompt, generation, running, usage string) string {
			return `level=INFO msg="Engine 000: Avg prompt throughput: ` + prompt + ` tokens/s, Avg generation throughput: ` + generation +
				` tokens/s, Running: ` + running + ` reqs, Waiting: 0 reqs, GPU KV cache usage: ` + usage + `%, Prefix cache hit rate: 0.0%"`
		}
		want := line("20.0", "14.3", "1", "17.5") + "\n" + line("0.0", "5.7", "0", "0.0") + "\n" + line("0.0", "0.0", "0", "0.0") + "\n"
		if got := out.String(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
		if strings.Count(out.String(), "\n") > 3 {
			t.Error("an idle engine goes on talking")
		}
	})
}

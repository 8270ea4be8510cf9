package launch

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"roundhouse/kernels/cpu"
)

// prompts are twenty of the demonstration model's questions, every other one
// answered greedily and the rest with a seed.
func prompts(t *testing.T) []map[string]any {
	t.Helper()
	list := questions(t)
	var out []map[string]any
	for i := range 20 {
		out = append(out, map[string]any{
			"messages":    []map[string]string{{"role": "user", "content": list[i*len(list)/20].Question}},
			"temperature": []float64{0, 0.9}[i%2], "seed": i, "max_tokens": 12, "ignore_eos": true, "return_token_ids": true,
		})
	}
	return out
}

// tokens asks all prompts, one after the other or all at once, n times each.
func tokens(t *testing.T, url string, prompts []map[string]any, together bool, n int) []string {
	t.Helper()
	out := make([]string, n*len(prompts))
	ask := func(i int) {
		var a struct {
			Choices []struct {
				IDs []int32 `json:"token_ids"`
			}
		}
		if err := postJSON(url+"/v1/chat/completions", prompts[i%len(prompts)], &a); err != nil {
			out[i] = err.Error()
			return
		}
		out[i] = fmt.Sprint(a.Choices[0].IDs)
	}
	var wg sync.WaitGroup
	for i := range out {
		if together {
			wg.Go(func() { ask(i) })
		} else {
			ask(i)
		}
	}
	wg.Wait()
	return out
}

// metric reads one number of /metrics: that of a name, and of a label where
// there are several.
func metric(t *testing.T, url, name string, label ...string) float64 {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + name + `\{[^}]*` + strings.Join(label, "") + `[^}]*\} (\S+)$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("there is no metric %s", name)
	}
	v, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// atOnce is tokens of all prompts together by a worker that is paused until the last
// has come: they have to share its cache, however slowly they come.
func atOnce(t *testing.T, url string, prompts []map[string]any, n int) []string {
	t.Helper()
	order := func(path string) {
		t.Helper()
		if err := postJSON(url+path, nil, &struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	order("/pause?mode=keep")
	answers := make(chan []string, 1)
	go func() { answers <- tokens(t, url, prompts, true, n) }()
	late := time.After(time.Minute)
	for all := float64(n * len(prompts)); metric(t, url, "vllm:num_requests_waiting") < all; {
		select {
		case <-time.After(time.Millisecond):
		case <-late:
			t.Fatalf("not all of %v requests have come within a minute", all)
		}
	}
	order("/resume")
	return <-answers
}

// TestSameTokensOnEveryISA holds on the real model that every instruction set of the
// CPU's kernels gives the same tokens: alone, in a batch of 64 that shares a
// cache too small for it, in chunks, and from the prefix cache.
func TestSameTokensOnEveryISA(t *testing.T) {
	asked := prompts(t)
	for i, weights := range [][]string{nil, {"--quantization", "sym_int4"}} {
		var want []string
		for _, isa := range cpu.ISAs() {
			t.Run(fmt.Sprint(isa, weights), func(t *testing.T) {
				alone := demoServer(t, append([]string{"--cpu-isa", isa, "--no-enable-prefix-caching"}, weights...)...)
				got := tokens(t, alone.URL, asked, false, 1)
				if want == nil {
					want = got
				}
				o, err := ParseServe(append([]string{"--cpu-isa", isa, "--max-num-seqs", "64", "--max-num-batched-tokens", "64", "--max-model-len", "256", "--block-size", "16", "--num-gpu-blocks-override", []string{"40", "20"}[i]}, weights...),
					func(name string) string { return map[string]string{"VLLM_SERVER_DEV_MODE": "1"}[name] })
				if err != nil {
					t.Fatal(err)
				}
				tight := serveOpen(t, o, quiet)
				got = append(got, atOnce(t, tight.URL, asked, []int{4, 2}[i])...)
				got = append(got, tokens(t, tight.URL, asked, false, 1)...)
				for i, ids := range got {
					if w := want[i%len(asked)]; ids != w || ids[0] != '[' {
						t.Errorf("prompt %d, time %d: got %s; want %s", i%len(asked), i/len(asked), ids, w)
					}
				}
				if metric(t, tight.URL, "vllm:num_preemptions_total") == 0 || metric(t, tight.URL, "vllm:prefix_cache_hits_total") == 0 {
					t.Error("nothing was preempted, or nothing came from the cache")
				}
			})
		}
	}
}

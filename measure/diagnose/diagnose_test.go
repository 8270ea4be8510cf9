package diagnose

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var monday = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// played is a recording of n moments whose pages a function writes.
func played(n int, every time.Duration, page func(i int) string) *Recording {
	r := &Recording{}
	for i := range n {
		r.Add(monday.Add(time.Duration(i)*every), page(i))
	}
	return r
}

// judged are the rules that find something, with their objects.
func judged(t *testing.T, r *Recording, f *Facts) map[string]Finding {
	t.Helper()
	report := Judge(r, nil, f, &Defaults)
	out := map[string]Finding{}
	for _, x := range report.Findings {
		out[x.Rule+" "+x.Object] = x
	}
	return out
}

// A worker whose memory grows by 6 % an hour is found; one that breathes with its
// load, or that filled its caches in the first hour, is not.
func TestMemoryLeak(t *testing.T) {
	f := func(name string, want bool, bytes func(hour float64) float64) {
		t.Helper()
		rng := rand.New(rand.NewPCG(1, 1))
		r := played(8*60, time.Minute, func(i int) string {
			return fmt.Sprintf("roundhouse_worker_state{pool=\"p\",worker=\"1\",state=\"ready\"} 1\nroundhouse_worker_memory_bytes{pool=\"p\",worker=\"1\"} %g\n", bytes(float64(i)/60)*(1+0.01*rng.NormFloat64()))
		})
		x, found := judged(t, r, &Facts{})["memory-leak p/1"]
		if found != want || found && (x.Command != "roundhouse rotate p/1" || !strings.Contains(x.Change.Proposed, "memory_growth")) {
			t.Errorf("%s: found is %t: %+v", name, found, x)
		}
	}
	f("6 % an hour", true, func(h float64) float64 { return 4e9 * (1 + 0.06*h) })
	f("steady", false, func(float64) float64 { return 4e9 })
	f("with the load", false, func(h float64) float64 { return 4e9 * (1 + 0.2*math.Sin(h*2)) })
	f("caches fill at first", false, func(h float64) float64 { return 4e9 * (1 + 0.5*math.Min(1, h)) })
}

// A worker that crashed three times within the hour is found, one that was turned
// three times is not.
func TestFlapping(t *testing.T) {
	f := func(reason string, want bool) {
		t.Helper()
		r := played(13, 5*time.Second, func(i int) string {
			page := "roundhouse_worker_state{pool=\"p\",worker=\"1\",state=\"ready\"} 1\n"
			if i > 3 {
				page += fmt.Sprintf("roundhouse_worker_starts_total{pool=\"p\",worker=\"1\",reason=%q} %d\n", reason, i/4)
			}
			return page
		})
		if x, found := judged(t, r, &Facts{})["flapping p/1"]; found != want || found && x.Severity != Critical {
			t.Errorf("%s: found is %t", reason, found)
		}
	}
	f("crashed", true)
	f("rotation", false)
}

// Prompts that are never found in a cache are told of with what keeps them out of it.
func TestPrefixMisses(t *testing.T) {
	f := func(p Pool, hits int, cause string) {
		t.Helper()
		p.Name = "p"
		r := played(61, time.Minute, func(i int) string {
			return fmt.Sprintf("vllm:num_requests_running{worker=\"p/1\"} 3\nvllm:prefix_cache_queries_total{worker=\"p/1\"} %d\nvllm:prefix_cache_hits_total{worker=\"p/1\"} %d\n", i*120_000, i*hits)
		})
		x, found := judged(t, r, &Facts{Pools: []Pool{p}})["prefix-misses p"]
		if found != (cause != "") || !strings.Contains(x.Cause, cause) {
			t.Errorf("%+v with %d hits: found is %t: %s", p, hits, found, x.Cause)
		}
	}
	f(Pool{Policy: "least_kv"}, 1000, "prompts differ")
	f(Pool{Policy: "round_robin"}, 1000, "the policy round_robin")
	f(Pool{Policy: "least_kv", Args: []string{"--no-enable-prefix-caching"}}, 0, "switched off")
	f(Pool{Policy: "least_kv"}, 60_000, "")

	// An engine without a cache looks nothing up.
	r := played(61, time.Minute, func(i int) string {
		return fmt.Sprintf("vllm:num_requests_running{worker=\"p/1\"} 3\nvllm:prefix_cache_queries_total{worker=\"p/1\"} 0\nvllm:prefix_cache_hits_total{worker=\"p/1\"} 0\nvllm:prompt_tokens_total{worker=\"p/1\"} %d\n", i*120_000)
	})
	for args, want := range map[string]bool{"--no-enable-prefix-caching": true, "--enforce-eager": false} {
		if x, found := judged(t, r, &Facts{Pools: []Pool{{Name: "p", Args: []string{args}}}})["prefix-misses p"]; found != want || found && !strings.Contains(x.Cause, "switched off") {
			t.Errorf("%s, and nothing is looked up: found is %t: %s", args, found, x.Cause)
		}
	}
}

// What could not be looked at is said, with what it would take.
func TestUnjudged(t *testing.T) {
	report := Judge(&Recording{}, nil, &Facts{}, &Defaults)
	if len(report.Unjudged) != len(RuleNames()) {
		t.Errorf("without a sample %d of %d rules have no answer", len(report.Unjudged), len(RuleNames()))
	}
	r := played(13, 5*time.Second, func(int) string { return "roundhouse_worker_state{pool=\"p\",worker=\"1\",state=\"ready\"} 1\n" })
	report = Judge(r, nil, &Facts{}, &Defaults)
	why := ""
	for _, u := range report.Unjudged {
		if u.Rule == "memory-leak" {
			why = u.Why
		}
	}
	if why != "it needs 2 h of samples, and there are 60 s" {
		t.Errorf("a leak within a minute: %q", why)
	}
}

// A finding that explains another is its cause, and stands before it.
func TestCauses(t *testing.T) {
	r := Report{Findings: []Finding{{Rule: "prefill-starvation", Object: "p/1", Severity: Warn}, {Rule: "kv-thrashing", Object: "p/1", Severity: Critical}, {Rule: "kv-thrashing", Object: "q/1", Severity: Info}}}
	r.explain()
	r.order()
	if r.Findings[0].Rule != "kv-thrashing" || r.Findings[1].CausedBy != "kv-thrashing of p/1" || r.Worst() != Critical {
		t.Errorf("%+v", r.Findings)
	}
}

// A flag is changed where it stands, however it is written, and added where it does not.
func TestChange(t *testing.T) {
	f := func(args string, want string) {
		t.Helper()
		p := Pool{Name: "p", Args: strings.Fields(args)}
		c := p.with("--max-num-seqs", "8")
		if !strings.Contains(c.Proposed, "args = ["+want+"]") || c.VLLM != "--max-num-seqs 8" {
			t.Errorf("%s gives %s", args, c.Proposed)
		}
	}
	f("", `"--max-num-seqs", "8"`)
	f("--a 1 --max-num-seqs 64 --b", `"--a", "1", "--max-num-seqs", "8", "--b"`)
	f("--max_num_seqs=64 --b", `"--max-num-seqs", "8", "--b"`)
}

// Counters that begin anew are no loss, those of Roundhouse that appear have grown from
// 0, and an engine's that come back have not.
func TestGrowth(t *testing.T) {
	f := func(name string, values []string, want float64) {
		t.Helper()
		r := played(len(values), time.Second, func(i int) string {
			if values[i] == "" {
				return "roundhouse_worker_state{pool=\"p\",worker=\"1\",state=\"ready\"} 1\n"
			}
			return fmt.Sprintf("%s{worker=\"p/1\"} %s\n", name, values[i])
		})
		if got := r.Grew(name, Labels{"worker": "p/1"}); got != want {
			t.Errorf("%s of %v grew by %g; want %g", name, values, got, want)
		}
	}
	f("vllm:generation_tokens_total", []string{"5", "8", "2", "4"}, 7)
	f("vllm:generation_tokens_total", []string{"", "800", "810"}, 10)
	f("roundhouse_worker_starts_total", []string{"", "", "3"}, 3)
}

// Quantiles lie within the bucket that holds them.
func TestQuantile(t *testing.T) {
	d := Distribution{Bounds: []float64{1, 2, 4, math.Inf(1)}, Counts: []float64{10, 80, 8, 2}}
	if a, b, c := d.Quantile(.05), d.Quantile(.5), d.Quantile(.999); a != .5 || b != 1.5 || c != 4 {
		t.Errorf("%g, %g, %g", a, b, c)
	}
	if !math.IsNaN((Distribution{}).Quantile(.5)) {
		t.Error("nothing has a median")
	}
}

// Trim keeps what is young, and the series go on.
func TestTrim(t *testing.T) {
	r := &Recording{}
	for i := range 100 {
		page := fmt.Sprintf("vllm:num_requests_running{worker=\"p/1\"} %d\n", i)
		if i < 5 {
			page += "vllm:num_requests_running{worker=\"p/gone\"} 1\n"
		}
		r.Add(monday.Add(time.Duration(i)*time.Second), page)
		r.Trim(10 * time.Second)
	}
	if v := r.Gauge("vllm:num_requests_running", nil); len(r.Times) != 11 || !slices.Equal(v, []float64{89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99}) {
		t.Errorf("%d moments: %v", len(r.Times), v)
	}
	if n := len(r.byName["vllm:num_requests_running"]); n != 1 {
		t.Errorf("%d series are kept", n)
	}
}

// Whatever an exposition says, rules answer or stay silent; they never fail.
func FuzzJudge(f *testing.F) {
	f.Add("vllm:num_requests_running{worker=\"p/1\"} 3\nvllm:kv_cache_usage_perc{worker=\"p/1\"} 0.99\n", "vllm:num_requests_running{worker=\"p/1\"} NaN\n")
	f.Add("roundhouse_ttft_seconds_bucket{pool=\"p\",le=\"0.1\"} 5\n", "roundhouse_ttft_seconds_bucket{pool=\"p\",le=\"x\"} -5\nvllm:num_requests_running{worker=\"\\\"")
	f.Add("roundhouse_worker_state{pool=\"p\",worker=\"1\",state=\"ready\"} 1\nroundhouse_worker_kv_capacity_tokens{pool=\"p\",worker=\"1\"} 0\n", "} {")
	f.Fuzz(func(t *testing.T, a, b string) {
		r := played(30, 10*time.Minute, func(i int) string {
			if i%2 == 0 {
				return a
			}
			return b
		})
		report := Judge(r, r, &Facts{}, &Defaults)
		for _, x := range report.Findings {
			if x.Object == "" && x.Says == "" {
				t.Errorf("an empty finding: %+v", x)
			}
		}
	})
}

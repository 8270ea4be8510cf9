package fleet

import (
	"maps"
	"math"
	"slices"
	"testing"

	"roundhouse/configs"
)

// TestReadGauges reads what engines write, and what they should not.
func TestReadGauges(t *testing.T) {
	f := func(name, text string, names map[string]string, usage, running, waiting float64, capacity int64) {
		t.Helper()
		g := readGauges([]byte(text), names)
		same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
		if !same(g.usage, usage) || !same(g.running, running) || !same(g.waiting, waiting) || g.capacity != capacity {
			t.Errorf("%s: got %+v", name, g)
		}
	}
	nan := math.NaN()
	f("vLLM", "# HELP x y\nvllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.25\nvllm:num_requests_running{model_name=\"a}b\"} 3.0\nvllm:num_requests_waiting 1\nvllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"100\"} 1.0\n", nil, 0.25, 3, 1, 1600)
	f("an older vLLM", "vllm:gpu_cache_usage_perc 0.5\n", nil, 0.5, nan, nan, 0)
	f("two engines", "vllm:kv_cache_usage_perc{engine=\"0\"} 0.2\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.4\nvllm:num_requests_running{engine=\"0\"} 1\nvllm:num_requests_running{engine=\"1\"} 2\n", nil, 0.30000000000000004, 3, nan, 0)
	f("names of its own", "sglang:token_usage 0.7\nvllm:kv_cache_usage_perc 0.1\n", map[string]string{"kv_cache_usage": "sglang:token_usage"}, 0.7, nan, nan, 0)
	f("nothing", "", nil, nan, nan, nan, 0)
	f("garbage", "\x00{\nvllm:kv_cache_usage_perc\nvllm:num_requests_running x\n}{\n", nil, nan, nan, nan, 0)
	f("absurd figures", "vllm:kv_cache_usage_perc NaN\nvllm:num_requests_waiting +Inf\nvllm:cache_config_info{block_size=\"-1\",num_gpu_blocks=\"x\"} 1\n", nil, nan, nan, math.Inf(1), 0)
	for _, x := range []float64{nan, math.Inf(1), -1, 7e300} {
		if whole(x) != -1 {
			t.Errorf("%g became a count", x)
		}
	}
}

// TestScrapeKeys holds the figures that a configuration may name to those that are
// read.
func TestScrapeKeys(t *testing.T) {
	known := slices.Sorted(maps.Keys(scrapeNames))
	if named := slices.Sorted(slices.Values(configs.ScrapeKeys)); !slices.Equal(known, named) {
		t.Errorf("a configuration may name %v; %v are read", named, known)
	}
}

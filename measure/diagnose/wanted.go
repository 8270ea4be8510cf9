package diagnose

import (
	"maps"
	"slices"
	"strings"
)

// wanted are the metrics that rules and detectors ask for, a histogram without its
// suffixes.
var wanted = map[string]bool{
	"roundhouse_worker_state": true, "roundhouse_worker_kv_capacity_tokens": true, "roundhouse_worker_kv_tokens": true,
	"roundhouse_worker_report_age_seconds": true, "roundhouse_in_flight_requests": true, "roundhouse_queue_requests": true,
	"roundhouse_requests_total": true, "roundhouse_refused_total": true, "roundhouse_hangups_total": true,
	"roundhouse_ttft_seconds": true, "roundhouse_ttft_prediction_ratio": true, "roundhouse_worker_requests_total": true,
	"roundhouse_worker_starts_total": true, "roundhouse_worker_memory_bytes": true,
	"roundhouse_device_utilization_ratio": true, "roundhouse_device_memory_used_bytes": true, "roundhouse_device_memory_total_bytes": true,
	"vllm:num_requests_running": true, "vllm:num_requests_waiting": true, "vllm:kv_cache_usage_perc": true, "vllm:num_preemptions_total": true,
	"vllm:request_success_total": true, "vllm:generation_tokens_total": true, "vllm:prompt_tokens_total": true,
	"vllm:prefix_cache_queries_total": true, "vllm:prefix_cache_hits_total": true,
	"vllm:request_prompt_tokens": true, "vllm:request_generation_tokens": true, "vllm:iteration_tokens_total": true,
	"vllm:inter_token_latency_seconds": true, "vllm:time_to_first_token_seconds": true,
	"vllm:request_queue_time_seconds": true, "vllm:request_prefill_time_seconds": true,
}

// Wanted reports whether anything is judged by a metric of this name; of a histogram
// the names of its parts count.
func Wanted(name string) bool {
	if wanted[name] {
		return true
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if of, ok := strings.CutSuffix(name, suffix); ok {
			return wanted[of]
		}
	}
	return false
}

// Names are the metrics that anything is judged by, of histograms all parts: for whoever
// asks a store of metrics.
func Names() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		names = append(names, name)
		if strings.HasSuffix(name, "_seconds") || strings.HasSuffix(name, "_ratio") || strings.HasSuffix(name, "_tokens") || name == "vllm:iteration_tokens_total" {
			names = append(names, name+"_bucket", name+"_sum", name+"_count")
		}
	}
	return names
}

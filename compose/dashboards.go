package compose

import (
	"fmt"

	"roundhouse/balancer/control/phase"
)

// Dashboards are the pages that are shipped.
func Dashboards() []Dashboard { return []Dashboard{users(), workers()} }

var all = 1.0

// workerState is the series that tells which workers of the chosen pools are in a
// phase.
func workerState(p phase.Phase) string {
	return fmt.Sprintf("roundhouse_worker_state{state=%q,%s}", string(p), byPool)
}

// quantiles asks for three quantiles of a histogram.
func quantiles(metric, filter, by string) []Query {
	var out []Query
	for _, q := range []string{"0.5", "0.95", "0.99"} {
		labels, legend := "le", "p"+map[string]string{"0.5": "50", "0.95": "95", "0.99": "99"}[q]
		if by != "" {
			labels, legend = "le, "+by, legend+" {{"+by+"}}"
		}
		out = append(out, Query{Expr: fmt.Sprintf("histogram_quantile(%s, sum by (%s) (rate(%s_bucket{%s}[$__rate_interval])))", q, labels, metric, filter), Legend: legend})
	}
	return out
}

const (
	byRequest = `pool=~"$pool",model=~"$model",route=~"$route"`
	byModel   = `pool=~"$pool",model=~"$model"`
	byPool    = `pool=~"$pool"`
	ofWorkers = `worker=~"($pool)/.*"`
)

// users is what those feel who send requests.
func users() Dashboard {
	return Dashboard{
		UID: "roundhouse-users", Title: "Roundhouse: what users feel",
		Variables: []Variable{{"pool", "roundhouse_worker_state", "pool"}, {"model", "roundhouse_requests_total", "model"}, {"route", "roundhouse_requests_total", "route"}},
		Rows: []Row{
			{"Now", []Panel{
				{Title: "Ready workers", Kind: "stat", Unit: "short", Queries: []Query{{Expr: `sum(` + workerState(phase.Ready) + `)`}}},
				{Title: "Requests at workers", Kind: "stat", Unit: "short", Queries: []Query{{Expr: `sum(roundhouse_in_flight_requests{` + byPool + `})`}}},
				{Title: "Requests waiting at the door", Kind: "stat", Unit: "short", Queries: []Query{{Expr: `sum(roundhouse_queue_requests{` + byPool + `})`}}},
				{Title: "KV cache promised", About: "What the door has promised, as a share of what the workers hold.", Kind: "stat", Unit: "percentunit", Max: &all,
					Queries: []Query{{Expr: `sum(roundhouse_worker_kv_tokens{source=~"charged|foreign",` + byPool + `}) / sum(roundhouse_worker_kv_capacity_tokens{` + byPool + `})`}}},
			}},
			{"Latency", []Panel{
				{Title: "Time to first token", Kind: "timeseries", Unit: "s", Queries: quantiles("roundhouse_ttft_seconds", byRequest, "")},
				{Title: "Between tokens", Kind: "timeseries", Unit: "s", Queries: quantiles("roundhouse_inter_token_seconds", byModel, "")},
				{Title: "Whole request", Kind: "timeseries", Unit: "s", Queries: quantiles("roundhouse_request_duration_seconds", byRequest, "")},
			}},
			{"Latency by model and by route", []Panel{
				{Title: "Time to first token by model", Kind: "timeseries", Unit: "s", Queries: quantiles("roundhouse_ttft_seconds", byRequest, "model")[1:2]},
				{Title: "Time to first token by route", Kind: "timeseries", Unit: "s", Queries: quantiles("roundhouse_ttft_seconds", byRequest, "route")[1:2]},
				{Title: "Whole request by model", Kind: "timeseries", Unit: "s", Queries: quantiles("roundhouse_request_duration_seconds", byRequest, "model")[1:2]},
			}},
			{"Throughput", []Panel{
				{Title: "Requests by outcome", Kind: "timeseries", Unit: "reqps", Stack: true,
					Queries: []Query{{Expr: `sum by (outcome) (rate(roundhouse_requests_total{` + byRequest + `}[$__rate_interval]))`, Legend: "{{outcome}}"}}},
				{Title: "Tokens", Kind: "timeseries", Unit: "short", Queries: []Query{{Expr: `sum by (kind) (rate(roundhouse_tokens_total{` + byRequest + `}[$__rate_interval]))`, Legend: "{{kind}} per second"}}},
				{Title: "Generated tokens by model", Kind: "timeseries", Unit: "short", Stack: true,
					Queries: []Query{{Expr: `sum by (model) (rate(roundhouse_tokens_total{kind="generated",` + byRequest + `}[$__rate_interval]))`, Legend: "{{model}}"}}},
			}},
			{"Queue", []Panel{
				{Title: "Waiting at the door", Kind: "timeseries", Unit: "short", Stack: true,
					Queries: []Query{{Expr: `sum by (pool, priority) (roundhouse_queue_requests{` + byPool + `})`, Legend: "{{pool}} {{priority}}"}}},
				{Title: "Time waited", Kind: "timeseries", Unit: "s", Queries: quantiles("roundhouse_queue_seconds", byPool, "")},
				{Title: "Refused", About: "By reason: full, wait, key_limit, auth, bad_request, no_worker, memory.", Kind: "timeseries", Unit: "reqps",
					Queries: []Query{{Expr: `sum by (reason) (rate(roundhouse_refused_total{` + byPool + `}[$__rate_interval]))`, Legend: "{{reason}}"}}},
			}},
			{"What was saved", []Panel{
				{Title: "Streams resumed elsewhere", Kind: "timeseries", Unit: "short", Queries: []Query{{Expr: `sum by (result) (increase(roundhouse_resumes_total{` + byPool + `}[$__rate_interval]))`, Legend: "{{result}}"}}},
				{Title: "Requests tried elsewhere", Kind: "timeseries", Unit: "short", Queries: []Query{{Expr: `sum by (reason) (increase(roundhouse_retries_total{` + byPool + `}[$__rate_interval]))`, Legend: "{{reason}}"}}},
				{Title: "Clients that left", Kind: "timeseries", Unit: "short", Queries: []Query{{Expr: `sum by (phase) (increase(roundhouse_hangups_total{` + byPool + `}[$__rate_interval]))`, Legend: "{{phase}}"}}},
				{Title: "What the door itself takes", Kind: "timeseries", Unit: "s", Queries: quantiles("roundhouse_overhead_seconds", byPool, "")},
			}},
		},
	}
}

// workers is what the workers do.
func workers() Dashboard {
	return Dashboard{
		UID: "roundhouse-workers", Title: "Roundhouse: workers and rotation",
		Variables: []Variable{{"pool", "roundhouse_worker_state", "pool"}},
		Rows: []Row{
			{"State and rotation", []Panel{
				{Title: "State of each worker", Kind: "state-timeline", Unit: "short", Queries: []Query{
					{Expr: `max by (pool, worker) (` + workerState(phase.Ready) + `) + 2 * max by (pool, worker) (` + workerState(phase.Draining) + `)`, Legend: "{{pool}}/{{worker}}: 1 ready, 2 draining"}}},
				{Title: "Turns: how long each part takes", Kind: "timeseries", Unit: "s",
					Queries: []Query{{Expr: `sum by (phase) (increase(roundhouse_turn_seconds_sum{` + byPool + `}[1h])) / sum by (phase) (increase(roundhouse_turn_seconds_count{` + byPool + `}[1h]))`, Legend: "{{phase}}"}}},
				{Title: "Rotations by how they ended", Kind: "timeseries", Unit: "short", Queries: []Query{{Expr: `sum by (pool, result) (increase(roundhouse_rotations_total{` + byPool + `}[1h]))`, Legend: "{{pool}} {{result}}"}}},
				{Title: "Since the last good rotation", Kind: "stat", Unit: "s", Queries: []Query{{Expr: `time() - roundhouse_rotation_last_success_timestamp_seconds{` + byPool + `}`, Legend: "{{pool}}"}}},
			}},
			{"KV cache", []Panel{
				{Title: "Promised, of capacity", Kind: "timeseries", Unit: "percentunit", Max: &all, Queries: []Query{
					{Expr: `sum by (pool, worker) (roundhouse_worker_kv_tokens{source=~"charged|foreign",` + byPool + `}) / sum by (pool, worker) (roundhouse_worker_kv_capacity_tokens{` + byPool + `})`, Legend: "{{pool}}/{{worker}}"}}},
				{Title: "As the workers say", Kind: "timeseries", Unit: "percentunit", Max: &all, Queries: []Query{{Expr: `max by (worker) (vllm:kv_cache_usage_perc{` + ofWorkers + `})`, Legend: "{{worker}}"}}},
				{Title: "Tokens by source", Kind: "timeseries", Unit: "short", Queries: []Query{{Expr: `sum by (source) (roundhouse_worker_kv_tokens{` + byPool + `})`, Legend: "{{source}}"}}},
				{Title: "Age of the reports", Kind: "timeseries", Unit: "s", Queries: []Query{{Expr: `roundhouse_worker_report_age_seconds{` + byPool + `}`, Legend: "{{pool}}/{{worker}}"}}},
			}},
			{"Scheduling", []Panel{
				{Title: "Running", Kind: "timeseries", Unit: "short", Stack: true, Queries: []Query{{Expr: `sum by (worker) (vllm:num_requests_running{` + ofWorkers + `})`, Legend: "{{worker}}"}}},
				{Title: "Waiting in the workers", Kind: "timeseries", Unit: "short", Stack: true, Queries: []Query{{Expr: `sum by (worker) (vllm:num_requests_waiting{` + ofWorkers + `})`, Legend: "{{worker}}"}}},
				{Title: "Preemptions", Kind: "timeseries", Unit: "short", Queries: []Query{{Expr: `sum by (worker) (increase(vllm:num_preemptions_total{` + ofWorkers + `}[$__rate_interval]))`, Legend: "{{worker}}"}}},
				{Title: "Why a worker was chosen", Kind: "timeseries", Unit: "reqps", Stack: true, Queries: []Query{{Expr: `sum by (reason) (rate(roundhouse_decisions_total{` + byPool + `}[$__rate_interval]))`, Legend: "{{reason}}"}}},
			}},
			{"Prefix cache", []Panel{
				{Title: "Prompt tokens found in the cache", Kind: "timeseries", Unit: "percentunit", Max: &all, Queries: []Query{
					{Expr: `sum by (worker) (rate(vllm:prefix_cache_hits_total{` + ofWorkers + `}[$__rate_interval])) / sum by (worker) (rate(vllm:prefix_cache_queries_total{` + ofWorkers + `}[$__rate_interval]))`, Legend: "{{worker}}"}}},
				{Title: "Prompt tokens", Kind: "timeseries", Unit: "short", Queries: []Query{{Expr: `sum by (worker) (rate(vllm:prompt_tokens_total{` + ofWorkers + `}[$__rate_interval]))`, Legend: "{{worker}} per second"}}},
				{Title: "Generated tokens", Kind: "timeseries", Unit: "short", Queries: []Query{{Expr: `sum by (worker) (rate(vllm:generation_tokens_total{` + ofWorkers + `}[$__rate_interval]))`, Legend: "{{worker}} per second"}}},
			}},
			{"Lengths and endings", []Panel{
				{Title: "Prompt lengths", Kind: "heatmap", Unit: "short", Queries: []Query{{Expr: `sum by (le) (increase(vllm:request_prompt_tokens_bucket{` + ofWorkers + `}[$__rate_interval]))`, Legend: "{{le}}"}}},
				{Title: "Answer lengths", Kind: "heatmap", Unit: "short", Queries: []Query{{Expr: `sum by (le) (increase(vllm:request_generation_tokens_bucket{` + ofWorkers + `}[$__rate_interval]))`, Legend: "{{le}}"}}},
				{Title: "Finish reasons", Kind: "timeseries", Unit: "reqps", Stack: true, Queries: []Query{{Expr: `sum by (finished_reason) (rate(vllm:request_success_total{` + ofWorkers + `}[$__rate_interval]))`, Legend: "{{finished_reason}}"}}},
			}},
			{"Inside the engines", []Panel{
				{Title: "Waiting in the engine", Kind: "timeseries", Unit: "s", Queries: quantiles("vllm:request_queue_time_seconds", ofWorkers, "")},
				{Title: "Prefill", Kind: "timeseries", Unit: "s", Queries: quantiles("vllm:request_prefill_time_seconds", ofWorkers, "")},
				{Title: "Decode", Kind: "timeseries", Unit: "s", Queries: quantiles("vllm:request_decode_time_seconds", ofWorkers, "")},
				{Title: "Tokens a step", Kind: "timeseries", Unit: "short", Queries: quantiles("vllm:iteration_tokens_total", ofWorkers, "")},
			}},
			{"Devices and memory", []Panel{
				{Title: "Memory of the workers", About: "Host memory of the process or the container.", Kind: "timeseries", Unit: "bytes", Queries: []Query{{Expr: `roundhouse_worker_memory_bytes{` + byPool + `}`, Legend: "{{pool}}/{{worker}}"}}},
				{Title: "Memory of the devices", Kind: "timeseries", Unit: "percentunit", Max: &all, Queries: []Query{
					{Expr: `roundhouse_device_memory_used_bytes{` + ofWorkers + `} / roundhouse_device_memory_total_bytes{` + ofWorkers + `}`, Legend: "{{worker}} {{pci}}"}}},
				{Title: "Devices at work", Kind: "timeseries", Unit: "percentunit", Max: &all, Queries: []Query{{Expr: `roundhouse_device_utilization_ratio{` + ofWorkers + `}`, Legend: "{{worker}} {{pci}}"}}},
				{Title: "Power", Kind: "timeseries", Unit: "watt", Queries: []Query{{Expr: `roundhouse_device_power_watts{` + ofWorkers + `}`, Legend: "{{worker}} {{pci}}"}}},
				{Title: "Temperature", Kind: "timeseries", Unit: "celsius", Queries: []Query{{Expr: `roundhouse_device_temperature_celsius{` + ofWorkers + `}`, Legend: "{{worker}} {{pci}}"}}},
				{Title: "Clock", Kind: "timeseries", Unit: "hertz", Queries: []Query{{Expr: `roundhouse_device_frequency_hertz{` + ofWorkers + `}`, Legend: "{{worker}} {{pci}}"}}},
			}},
			{"Trouble", []Panel{
				{Title: "Starts by reason", Kind: "timeseries", Unit: "short", Queries: []Query{{Expr: `sum by (pool, worker, reason) (increase(roundhouse_worker_starts_total{` + byPool + `}[1h]))`, Legend: "{{pool}}/{{worker}} {{reason}}"}}},
				{Title: "Ejections", Kind: "timeseries", Unit: "short", Queries: []Query{{Expr: `sum by (pool, worker, reason) (increase(roundhouse_ejections_total{` + byPool + `}[1h]))`, Legend: "{{pool}}/{{worker}} {{reason}}"}}},
				{Title: "What runs", Kind: "table", Unit: "short", Queries: []Query{{Expr: `roundhouse_build_info`}}},
			}},
		},
	}
}

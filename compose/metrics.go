package compose

// Metric is one that a dashboard or a rule may ask for.
type Metric struct {
	Name   string   // of a histogram without _bucket, _sum and _count
	Kind   string   // counter, gauge or histogram
	Labels []string // besides those that Prometheus adds: job, instance
}

// Metrics lists what is exported: all of roundhouse's own, and of the
// workers' what the dashboards use. The workers' carry a worker label.
func Metrics() []Metric {
	m := func(kind, name string, labels ...string) Metric { return Metric{name, kind, labels} }
	return []Metric{
		m("gauge", "roundhouse_build_info", "component", "version"),
		m("counter", "roundhouse_requests_total", "pool", "model", "route", "code", "outcome"),
		m("histogram", "roundhouse_request_duration_seconds", "pool", "model", "route"),
		m("histogram", "roundhouse_ttft_seconds", "pool", "model", "route"),
		m("histogram", "roundhouse_inter_token_seconds", "pool", "model"),
		m("histogram", "roundhouse_overhead_seconds", "pool"),
		m("histogram", "roundhouse_queue_seconds", "pool", "priority"),
		m("gauge", "roundhouse_queue_requests", "pool", "priority"),
		m("counter", "roundhouse_refused_total", "pool", "reason"),
		m("counter", "roundhouse_tokens_total", "pool", "model", "route", "kind"),
		m("counter", "roundhouse_key_requests_total", "key", "outcome"),
		m("counter", "roundhouse_key_tokens_total", "key", "kind"),
		m("gauge", "roundhouse_in_flight_requests", "pool", "worker"),
		m("gauge", "roundhouse_worker_state", "pool", "worker", "state"),
		m("gauge", "roundhouse_worker_kv_capacity_tokens", "pool", "worker"),
		m("gauge", "roundhouse_worker_kv_tokens", "pool", "worker", "source"),
		m("gauge", "roundhouse_worker_report_age_seconds", "pool", "worker"),
		m("counter", "roundhouse_decisions_total", "pool", "policy", "reason"),
		m("counter", "roundhouse_retries_total", "pool", "reason"),
		m("counter", "roundhouse_resumes_total", "pool", "reason", "result"),
		m("counter", "roundhouse_hangups_total", "pool", "phase"),
		m("counter", "roundhouse_log_lines_dropped_total"),
		m("counter", "roundhouse_worker_requests_total", "pool", "worker", "outcome"),
		m("histogram", "roundhouse_ttft_prediction_ratio", "pool", "worker"),
		m("counter", "roundhouse_ejections_total", "pool", "worker", "reason"),
		m("counter", "roundhouse_worker_starts_total", "pool", "worker", "reason"),
		m("histogram", "roundhouse_turn_seconds", "pool", "phase"),
		m("counter", "roundhouse_rotations_total", "pool", "result"),
		m("gauge", "roundhouse_rotation_last_success_timestamp_seconds", "pool"),
		m("gauge", "roundhouse_worker_memory_bytes", "pool", "worker"),
		m("gauge", "roundhouse_config_last_reload_successful"),

		m("gauge", "roundhouse_device_memory_total_bytes", "worker", "device", "pci"),
		m("gauge", "roundhouse_device_memory_used_bytes", "worker", "device", "pci"),
		m("gauge", "roundhouse_device_utilization_ratio", "worker", "device", "pci"),
		m("gauge", "roundhouse_device_frequency_hertz", "worker", "device", "pci"),
		m("gauge", "roundhouse_device_temperature_celsius", "worker", "device", "pci"),
		m("gauge", "roundhouse_device_power_watts", "worker", "device", "pci"),

		m("gauge", "vllm:num_requests_running", "worker", "engine", "model_name"),
		m("gauge", "vllm:num_requests_waiting", "worker", "engine", "model_name"),
		m("gauge", "vllm:kv_cache_usage_perc", "worker", "engine", "model_name"),
		m("counter", "vllm:prefix_cache_queries_total", "worker", "engine", "model_name"),
		m("counter", "vllm:prefix_cache_hits_total", "worker", "engine", "model_name"),
		m("counter", "vllm:num_preemptions_total", "worker", "engine", "model_name"),
		m("counter", "vllm:prompt_tokens_total", "worker", "engine", "model_name"),
		m("counter", "vllm:generation_tokens_total", "worker", "engine", "model_name"),
		m("counter", "vllm:request_success_total", "worker", "engine", "model_name", "finished_reason"),
		m("histogram", "vllm:request_prompt_tokens", "worker", "engine", "model_name"),
		m("histogram", "vllm:request_generation_tokens", "worker", "engine", "model_name"),
		m("histogram", "vllm:iteration_tokens_total", "worker", "engine", "model_name"),
		m("histogram", "vllm:request_queue_time_seconds", "worker", "engine", "model_name"),
		m("histogram", "vllm:request_prefill_time_seconds", "worker", "engine", "model_name"),
		m("histogram", "vllm:request_decode_time_seconds", "worker", "engine", "model_name"),
	}
}

package balancer

import (
	"io"
	"log/slog"
	"net"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"roundhouse/balancer/control"
	"roundhouse/balancer/ledger"
)

// TestMetricNames holds the door's metrics to the names and labels that bind.
func TestMetricNames(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	set := control.WorkerSet{Schema: 1, Pools: []control.Pool{{Name: "p", Workers: []control.Worker{{Name: "1", URL: "http://127.0.0.1:1", State: "ready", Kind: "vllm", KVTokens: 100}}}}}
	d, err := New(Options{Listener: ln, Set: &set, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		go d.watcher.Run()
		d.stopAll()
	}()
	d.ledger.Report(d.current().workers[0].Acct, d.current().workers[0].Generation(), ledger.Report{At: d.now(), Used: 1, Own: -1, Others: -1, Running: -1, Waiting: -1, Progress: -1})
	want := map[string]string{
		"roundhouse_build_info": "[component version]", "roundhouse_requests_total": "[pool model route code outcome]",
		"roundhouse_request_duration_seconds": "[pool model route]", "roundhouse_ttft_seconds": "[pool model route]",
		"roundhouse_inter_token_seconds": "[pool model]", "roundhouse_overhead_seconds": "[pool]", "roundhouse_queue_seconds": "[pool priority]",
		"roundhouse_queue_requests": "[pool priority]", "roundhouse_refused_total": "[pool reason]", "roundhouse_tokens_total": "[pool model route kind]",
		"roundhouse_in_flight_requests": "[pool worker]", "roundhouse_worker_state": "[pool worker state]", "roundhouse_worker_kv_capacity_tokens": "[pool worker]",
		"roundhouse_worker_kv_tokens": "[pool worker source]", "roundhouse_worker_report_age_seconds": "[pool worker]", "roundhouse_door_fault": "[what]",
		"roundhouse_decisions_total": "[pool policy reason]", "roundhouse_retries_total": "[pool reason]", "roundhouse_resumes_total": "[pool reason result]",
		"roundhouse_key_requests_total": "[key outcome]", "roundhouse_key_tokens_total": "[key kind]",
		"roundhouse_hangups_total": "[pool phase]", "roundhouse_ejections_total": "[pool worker reason]", "roundhouse_log_lines_dropped_total": "[]", "roundhouse_request_log_lines_dropped_total": "[]",
		"roundhouse_worker_requests_total": "[pool worker outcome]", "roundhouse_ttft_prediction_ratio": "[pool worker]",
	}
	descs := make(chan *prometheus.Desc, 100)
	d.metrics.Registry.Describe(descs)
	newGauges(&d.common).Describe(descs) // the registry's own saw no pool yet
	close(descs)
	seen := map[string]bool{}
	form := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	for desc := range descs {
		m := form.FindStringSubmatch(desc.String())
		if m == nil {
			t.Fatalf("a description is %s", desc)
		}
		labels := "[" + regexp.MustCompile(`,`).ReplaceAllString(m[2], " ") + "]"
		if w, ok := want[m[1]]; !ok || w != labels {
			t.Errorf("%s has labels %s; want %s", m[1], labels, w)
		}
		seen[m[1]] = true
	}
	for name := range want {
		if !seen[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

//go:build prometheus || docker || deb

package compose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"roundhouse/test/patience"
	"roundhouse/test/ports"
)

// TestPrometheus: a real Prometheus scrapes a running door, supervisor and
// workers while they live through a rotation, crashes, refusals and clients that
// leave. Our names are clean to promtool, every rule loads, and every query of our
// dashboards and of vLLM's own returns data. Run by `go test -tags prometheus ./compose`.
func TestPrometheus(t *testing.T) {
	for _, tool := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is missing (Debian: prometheus)")
		}
	}
	dir := t.TempDir()
	door, admin := startRoundhouse(t, dir, deviceWorker(t, http.StatusInternalServerError), deviceWorker(t, http.StatusOK))
	traffic(t, door)
	checkMetrics(t, door)
	prom := startPrometheus(t, dir, door, admin)

	var open []string
	for _, d := range Dashboards() {
		for _, row := range d.Rows {
			for _, p := range row.Panels {
				for _, q := range p.Queries {
					open = append(open, q.Expr)
				}
			}
		}
	}
	open = append(open, stockQueries()...)
	trouble := time.Now().Add(4 * time.Second)
	for limit := patience.For(8 * time.Minute); len(open) > 0 && !limit.Over(); {
		traffic(t, door) // rates need something that grows
		mischief(t, door)
		if time.Now().After(trouble) {
			if n := ask(t, prom, `count(ALERTS{alertstate="firing",alertname!~"RoundhouseWorker(Flapping|Ejected)"})`); n != 0 {
				t.Errorf("%d alerts fire on a system that heals itself", n)
			}
			run(t, dir, filepath.Join(dir, "roundhouse"), "rotate", "chat", "--admin", admin)
			crash(t, door, admin, patience.For(time.Minute))
			trouble = time.Now().Add(2 * time.Second)
		}
		var left []string
		for _, q := range open {
			if ask(t, prom, q) == 0 {
				left = append(left, q)
			}
		}
		open = left
	}
	for _, q := range open {
		t.Errorf("no data for %s", q)
	}
	checkTargets(t, prom)
	log, err := os.ReadFile(filepath.Join(dir, "prometheus.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "level=warn") || strings.Contains(line, "level=error") {
			t.Errorf("Prometheus warns: %s", line)
		}
	}
}

// stockQueries are those of the dashboards that vLLM itself offers, the one of old and
// the newer set, which must work on our page as on one engine's: names and labels of
// metrics are their only interface.
func stockQueries() []string {
	const of = `{model_name="roundhouse-demo"}`
	var out []string
	for _, name := range []string{"e2e_request_latency_seconds", "inter_token_latency_seconds", "time_to_first_token_seconds"} {
		for _, q := range []string{"0.99", "0.95", "0.9", "0.5"} {
			out = append(out, "histogram_quantile("+q+", sum by(le) (rate(vllm:"+name+"_bucket"+of+"[$__rate_interval])))")
		}
		out = append(out, "rate(vllm:"+name+"_sum"+of+"[$__rate_interval]) / rate(vllm:"+name+"_count"+of+"[$__rate_interval])")
	}
	for _, name := range []string{"prompt_tokens_total", "generation_tokens_total", "request_queue_time_seconds_sum", "request_prefill_time_seconds_sum",
		"request_decode_time_seconds_sum", "request_max_num_generation_tokens_sum"} {
		out = append(out, "rate(vllm:"+name+of+"[$__rate_interval])")
	}
	for _, name := range []string{"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"} {
		out = append(out, "vllm:"+name+of)
	}
	for _, name := range []string{"request_prompt_tokens", "request_generation_tokens"} {
		out = append(out, "sum by(le) (increase(vllm:"+name+"_bucket"+of+"[$__rate_interval]))")
	}
	// What the newer ones ask beside that: by job, instance and engine.
	const by = `job=~"roundhouse-door",instance=~".*"`
	const engine = `{` + by + `,model_name=~"roundhouse-demo",engine=~"0"`
	for _, reason := range []string{"capacity", "deferred"} {
		out = append(out, "sum(vllm:num_requests_waiting_by_reason"+engine+`,reason="`+reason+`"})`)
	}
	for _, name := range []string{"prompt_tokens_cached_total", "prefix_cache_hits_total"} {
		out = append(out, "sum(rate(vllm:"+name+engine+"}[$__rate_interval])) / (sum(rate(vllm:prompt_tokens_total"+engine+"}[$__rate_interval])) > 0)")
	}
	out = append(out, "histogram_quantile(0.95, sum by (le) (rate(vllm:request_time_per_output_token_seconds_bucket"+engine+"}[$__rate_interval])))",
		"sum(rate(vllm:num_preemptions_total"+engine+"}[$__rate_interval]))", "max by (instance, engine) (vllm:kv_cache_usage_perc"+engine+"})",
		"count(vllm:num_requests_running"+engine+"}) == 2",
		"(sum(rate(http_requests_total{"+by+`,status="5xx"}[$__rate_interval])) or vector(0)) / (sum(rate(http_requests_total{`+by+"}[$__rate_interval])) > 0)")
	return append(out, "sum by(finished_reason) (increase(vllm:request_success_total"+of+"[$__rate_interval]))", "group by (model_name) ({model_name!=\"\"})")
}

// deviceWorker is a worker that somebody else runs, on a device that this machine
// does not have, and that answers chats with one status; it returns its address.
func deviceWorker(t *testing.T, chats int) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":[{"id":"elsewhere"}]}`) })
	mux.HandleFunc("/v1/completions", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"choices":[{"text":"ok"}]}`) })
	mux.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(chats)
		fmt.Fprint(w, `{"choices":[{"message":{"content":"ok"}}]}`)
	})
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\",model_name=\"elsewhere\"} 0.0\n")
		for name, value := range map[string]int{"memory_total_bytes": 24 << 30, "memory_used_bytes": 20 << 30, "utilization_ratio": 1, "frequency_hertz": 2400000000, "temperature_celsius": 61, "power_watts": 190} {
			fmt.Fprintf(w, "# HELP roundhouse_device_%s Of the device.\n# TYPE roundhouse_device_%s gauge\nroundhouse_device_%s{device=\"A device\",pci=\"0000:18:00.0\"} %d\n", name, name, name, value)
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }() // ends with Close
	t.Cleanup(func() { server.Close() })
	return "http://" + l.Addr().String()
}

// mischief is what goes wrong: a request that is none, one that a worker fails and
// another then serves, which ejects the first,
// and a stream that nobody reads to its end.
func mischief(t *testing.T, door string) {
	t.Helper()
	for _, body := range []string{`{"model":`, `{"model":"elsewhere","messages":[{"role":"user","content":"?"}]}`} {
		client := http.Client{Timeout: time.Second} // while its worker is out, a request waits
		if res, err := client.Post("http://"+door+"/v1/chat/completions", "application/json", strings.NewReader(body)); err == nil {
			res.Body.Close()
		}
	}
	res, err := http.Post("http://"+door+"/v1/chat/completions", "application/json", strings.NewReader(long))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadFull(res.Body, make([]byte, 64)) // the first events; the rest is not waited for
	res.Body.Close()
}

const long = `{"model":"roundhouse-demo","stream":true,"max_tokens":500,"messages":[{"role":"user","content":"Count from 1 to 100 by 1."}]}`

// crash kills a worker while streams run there: what has begun is resumed at the
// other, what has not is tried there.
func crash(t *testing.T, door, admin string, limit *patience.Limit) {
	t.Helper()
	var streams sync.WaitGroup
	for range 12 {
		streams.Go(func() {
			res, err := http.Post("http://"+door+"/v1/chat/completions", "application/json", strings.NewReader(long))
			if err != nil {
				return // what becomes of them is another test's question
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		})
	}
	ended := make(chan struct{})
	go func() {
		streams.Wait()
		close(ended)
	}()
	victim := 0
	for victim == 0 {
		if victim = busy(t, admin); victim == 0 {
			select {
			case <-ended: // before one was seen, which is not what is meant
				if limit.Over() {
					t.Fatal("no worker is ever seen with streams")
				}
				crash(t, door, admin, limit)
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	_ = syscall.Kill(victim, syscall.SIGKILL) // it may have ended
	streams.Wait()
}

// busy is the process of a worker that has several requests; 0: none has.
func busy(t *testing.T, admin string) int {
	t.Helper()
	res, err := http.Get("http://" + admin + "/api/workers")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		Workers []struct {
			Requests struct {
				InFlight int `json:"in_flight"`
			}
			Place struct{ PID int }
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	for _, w := range answer.Workers {
		if w.Requests.InFlight > 2 && w.Place.PID > 1 {
			return w.Place.PID
		}
	}
	return 0
}

// checkTargets: every scrape was read without a complaint.
func checkTargets(t *testing.T, prom string) {
	t.Helper()
	res, err := http.Get(prom + "/api/v1/targets")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		Data struct {
			ActiveTargets []struct{ ScrapeURL, Health, LastError string }
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || len(answer.Data.ActiveTargets) != 2 {
		t.Fatalf("%v %+v", err, answer)
	}
	for _, target := range answer.Data.ActiveTargets {
		if target.Health != "up" || target.LastError != "" {
			t.Errorf("Prometheus of %s: %s %s", target.ScrapeURL, target.Health, target.LastError)
		}
	}
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// start runs a program until the end of the test and waits for a page of it.
func start(t *testing.T, dir, page, name string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, filepath.Base(name)+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()
		log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s printed:\n%s", name, text)
		}
	})
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for limit := patience.For(4 * time.Minute); ; {
		if res, err := http.Get(page); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		if <-tick.C; limit.Over() {
			t.Fatalf("%s is not ready within four minutes", name)
		}
	}
}

func startRoundhouse(t *testing.T, dir, fails, serves string) (door, admin string) {
	t.Helper()
	build := exec.Command("go", "build", "-o", dir, "roundhouse/cmd/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	door, admin = ports.Address(t), ports.Address(t)
	text := fmt.Sprintf("state_dir = %q\ndoor {\n  listen = %q\n  breaker {\n    failures = 1\n    open     = \"1s\"\n  }\n}\nadmin { listen = %q }\npool \"chat\" {\n  workers = 2\n  devices = \"cpu\"\n  engine { served_model_name = [\"roundhouse-demo\"] }\n}\npool \"elsewhere\" {\n  driver = \"static\"\n  worker \"a\" { url = %q }\n  worker \"b\" { url = %q }\n}\n",
		filepath.Join(dir, "state"), door, admin, fails, serves)
	if err := os.WriteFile(filepath.Join(dir, "c.hcl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, dir, "http://"+door+"/health", filepath.Join(dir, "roundhouse"), "up", "-c", "c.hcl")
	return door, admin
}

func startPrometheus(t *testing.T, dir, door, admin string) string {
	t.Helper()
	text, err := os.ReadFile("prometheus/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs("prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	for old, now := range map[string]string{"door:8000": door, "127.0.0.1:8001": admin, "rules.yml": rules,
		"scrape_interval: 5s": "scrape_interval: 1s", "evaluation_interval: 15s": "evaluation_interval: 2s"} {
		if !bytes.Contains(text, []byte(old)) {
			t.Fatalf("prometheus.yml has no %q any more", old)
		}
		text = bytes.ReplaceAll(text, []byte(old), []byte(now))
	}
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	address := ports.Address(t)
	start(t, dir, "http://"+address+"/-/ready", "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address="+address)
	return "http://" + address
}

// traffic sends a few requests, streamed and not, some with a common prefix.
func traffic(t *testing.T, door string) {
	t.Helper()
	if err := requests(door); err != nil {
		t.Fatal(err)
	}
}

// requests is traffic for a goroutine that is not the test's own.
func requests(door string) error {
	for i := range 4 {
		body := fmt.Sprintf(`{"model":"roundhouse-demo","stream":%t,"max_tokens":8,"messages":[{"role":"user","content":"%s What is %d + 15?"}]}`,
			i%2 == 0, strings.Repeat("The same beginning. ", 10), 20+i)
		res, err := http.Post("http://"+door+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || i%2 == 0 && !strings.Contains(string(text), "[DONE]") {
			return fmt.Errorf("status %d, %w: %s", res.StatusCode, err, text)
		}
	}
	return nil
}

// checkMetrics gives the door's page to promtool. vLLM's names hold colons,
// which promtool dislikes and which are vLLM's own; ours have no excuse.
func checkMetrics(t *testing.T, door string) {
	t.Helper()
	res, err := http.Get("http://" + door + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	cmd := exec.Command("promtool", "check", "metrics")
	cmd.Stdin = res.Body
	out, err := cmd.CombinedOutput()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "vllm:") && strings.TrimSpace(line) != "" {
			t.Errorf("promtool: %s", line)
		}
	}
}

// ask returns how many series with a number a query returns.
func ask(t *testing.T, prom, expr string) int {
	t.Helper()
	expr = strings.NewReplacer("$__rate_interval", "20s", "$pool", ".*", "$model", ".*", "$route", ".*").Replace(expr)
	res, err := http.Get(prom + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []struct{ Value [2]any } }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %v %s", expr, err, answer.Error)
	}
	n := 0
	for _, r := range answer.Data.Result {
		if r.Value[1] != "NaN" {
			n++
		}
	}
	return n
}

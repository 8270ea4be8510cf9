//go:build prometheus || docker

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
	"syscall"
	"testing"
	"time"
)

// TestPrometheus: a real Prometheus scrapes a running door, supervisor and
// workers; our names are clean to promtool, every rule loads, and every query
// of the dashboards returns data. Run by `go test -tags prometheus ./compose`.
func TestPrometheus(t *testing.T) {
	for _, tool := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is missing (Debian: prometheus)")
		}
	}
	dir := t.TempDir()
	door, admin := startRoundhouse(t, dir)
	traffic(t, door)
	run(t, dir, filepath.Join(dir, "roundhouse"), "rotate", "chat", "--admin", admin)
	traffic(t, door)
	checkMetrics(t, door)
	prom := startPrometheus(t, dir, door, admin)

	var open []Query
	for _, d := range Dashboards() {
		for _, row := range d.Rows {
			for _, p := range row.Panels {
				open = append(open, p.Queries...)
			}
		}
	}
	deadline := time.Now().Add(90 * time.Second)
	for len(open) > 0 && time.Now().Before(deadline) {
		traffic(t, door) // rates need something that grows
		var left []Query
		for _, q := range open {
			if n := ask(t, prom, q.Expr); n == 0 && !q.Rare {
				left = append(left, q)
			}
		}
		open = left
	}
	for _, q := range open {
		t.Errorf("no data for %s", q.Expr)
	}
	if n := ask(t, prom, `count(ALERTS{alertstate="firing"})`); n != 0 {
		t.Errorf("%d alerts fire on a healthy system", n)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
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
	late := time.After(60 * time.Second)
	for {
		if res, err := http.Get(page); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s is not ready within a minute", name)
		}
	}
}

func startRoundhouse(t *testing.T, dir string) (door, admin string) {
	t.Helper()
	build := exec.Command("go", "build", "-o", dir, "roundhouse/cmd/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	door, admin = freeAddress(t), freeAddress(t)
	text := fmt.Sprintf("state_dir = %q\ndoor { listen = %q }\nadmin { listen = %q }\npool \"chat\" {\n  workers = 2\n  devices = \"cpu\"\n  engine { served_model_name = [\"roundhouse-demo\"] }\n}\n",
		filepath.Join(dir, "state"), door, admin)
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
	for old, now := range map[string]string{"127.0.0.1:8000": door, "127.0.0.1:8001": admin, "rules.yml": rules,
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
	address := freeAddress(t)
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

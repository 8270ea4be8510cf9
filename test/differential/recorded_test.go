package differential

import (
	"context"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"roundhouse/test/ports"
	"roundhouse/test/program"
)

var built program.Set

func TestMain(m *testing.M) {
	code := m.Run()
	built.Remove()
	os.Exit(code)
}

// setup is how both servers are started. Rows of docs/api.md that hold for one of them
// alone have its name before those of the requests.
type setup struct {
	name    string
	flags   []string
	key     string // that every request has
	asked   string // the requests
	answers string // what vLLM answered
}

var setups = []setup{
	{asked: "testdata/requests.jsonl", answers: "testdata/answers.jsonl", flags: []string{"--enable-auto-tool-choice", "--tool-call-parser", "hermes"}},
	{name: "odd:", asked: "testdata/odd.jsonl", answers: "testdata/oddanswers.jsonl", flags: []string{"--enable-auto-tool-choice", "--tool-call-parser", "hermes"}},
	{name: "2:", asked: "testdata/requests.jsonl", answers: "testdata/answers2.jsonl", key: "sekret", flags: []string{"--reasoning-parser", "qwen3", "--enable-prompt-tokens-details", "--enable-request-id-headers",
		"--enable-server-load-tracking", "--max-logprobs", "5", "--api-key", "sekret", "--enable-force-include-usage"}},
}

// common are the flags of every setup.
var common = []string{"--served-model-name", "roundhouse-demo", "--max-model-len", "4096", "--max-num-seqs", "32", "--dtype", "bfloat16"}

// requests are the setup's, with the setup's key where they bring none.
func (s *setup) requests(t *testing.T) []Request {
	t.Helper()
	list, err := Lines[Request](s.asked)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		h := list[i].Headers
		if s.key == "" || h["Authorization"] != "" || h["x-api-key"] != "" {
			continue
		}
		list[i].Headers = map[string]string{"Authorization": "Bearer " + s.key}
		maps.Copy(list[i].Headers, h)
	}
	return list
}

// worker starts our worker as the recorded vLLM was started.
func (s *setup) worker(t *testing.T) string {
	t.Helper()
	address := ports.Address(t)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, built.Path(t, "roundhouse-worker"), slices.Concat([]string{"serve", "--host", "127.0.0.1", "--port", port(t, address)}, common, s.flags)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	url := "http://" + address
	for {
		if res, err := http.Get(url + "/health"); err == nil {
			_ = res.Body.Close()
			return url
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the worker ended: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func port(t *testing.T, address string) string {
	t.Helper()
	_, p, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRecorded holds our worker to what vLLM answered, request by request, but
// for what the table of docs/api.md has; and the table to what is true.
func TestRecorded(t *testing.T) {
	for _, s := range setups {
		t.Run("setup "+s.name, func(t *testing.T) {
			requests := s.requests(t)
			answers, err := Lines[Answer](s.answers)
			if err != nil {
				t.Fatal(err)
			}
			if len(requests) != len(answers) || len(requests) < 500 {
				t.Fatalf("%d requests, %d answers", len(requests), len(answers))
			}
			for i := range requests {
				if requests[i].Name != answers[i].Name {
					t.Fatalf("request %d is %s, answer %d is %s", i, requests[i].Name, i, answers[i].Name)
				}
			}
			s.hold(t, requests, answers)
		})
	}
}

// hold compares our worker's answers with vLLM's.
func (s *setup) hold(t *testing.T, requests []Request, answers []Answer) {
	t.Helper()
	table, err := Table("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	url := s.worker(t)
	equal := 0
	for i := range requests {
		got, err := requests[i].Ask(url)
		if err != nil {
			t.Fatal(err)
		}
		if got.Status >= 500 {
			t.Errorf("%s: status %d; nothing that a client sends is answered so", got.Name, got.Status)
		}
		differences := Compare(&answers[i], got)
		if len(differences) == 0 {
			equal++
		}
		for _, d := range differences {
			if !Wanted(table, s.name, d) {
				t.Errorf("%s%s", s.name, d)
			}
		}
	}
	for _, e := range table {
		if e.Met == 0 && e.Setup == s.name {
			t.Errorf("docs/api.md:%d: no request differs so any more", e.Line)
		}
	}
	t.Logf("%d of %d equal", equal, len(requests))
}

package differential

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
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

// worker starts our worker as the recorded vLLM was started.
func worker(t *testing.T) string {
	t.Helper()
	address := ports.Address(t)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, built.Path(t, "roundhouse-worker"), "serve", "--host", "127.0.0.1", "--port", port(t, address), "--served-model-name", "roundhouse-demo",
		"--max-model-len", "4096", "--max-num-seqs", "32", "--dtype", "bfloat16", "--enable-auto-tool-choice", "--tool-call-parser", "hermes")
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
	requests, err := Lines[Request]("testdata/requests.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	answers, err := Lines[Answer]("testdata/answers.jsonl")
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
	hold(t, requests, answers)
}

// hold compares our worker's answers with vLLM's.
func hold(t *testing.T, requests []Request, answers []Answer) {
	t.Helper()
	table, err := Table("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	url := worker(t)
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
			if !Wanted(table, d) {
				t.Error(d)
			}
		}
	}
	for _, e := range table {
		if e.Met == 0 {
			t.Errorf("docs/api.md:%d: no request differs so any more", e.Line)
		}
	}
	t.Logf("%d of %d equal", equal, len(requests))
}

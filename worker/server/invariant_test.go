package server_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"roundhouse/kernels"
	"roundhouse/worker"
	"roundhouse/worker/kv"
	"roundhouse/worker/server"
	"roundhouse/worker/tokenizer"
)

// broken is an executable that finds an invariant of its own broken.
type broken struct{}

func (broken) Run(*kernels.Step, *kernels.Result) error { panic("BUG: a block is held twice") }

// TestBrokenInvariant holds that a broken invariant ends the process and says
// so, whoever finds it: the engine, or a request's handler, whose panics
// net/http would swallow.
func TestBrokenInvariant(t *testing.T) {
	if where := os.Getenv("ROUNDHOUSE_TEST_BREAKS"); where != "" {
		breakIn(t, where)
		return
	}
	for where, want := range map[string]string{"engine": "panic: BUG: a block is held twice", "handler": "panic: BUG: a template without a message"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestBrokenInvariant$")
		cmd.Env = append(os.Environ(), "ROUNDHOUSE_TEST_BREAKS="+where)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), want) {
			t.Errorf("in the %s: %v\n%s", where, err, out)
		}
	}
}

// breakIn serves one request in the course of which an invariant breaks.
func breakIn(t *testing.T, where string) {
	tok := loadTokenizer(t)
	groups := []kv.Group{{Blocks: 64, BlockTokens: 8}}
	e := worker.NewEngine(worker.Config{
		Exec: broken{}, Groups: groups, Limits: worker.Limits{Tokens: 64, Seqs: 4, Rows: 4}, MaxModelLen: 64, Vocab: tok.Size(), Models: []string{"m"},
	})
	ran := make(chan error)
	go func() { ran <- e.Run(context.Background()) }()
	hs := httptest.NewServer(server.New(server.Config{
		Engine: e, Tokenizer: tok, Models: []string{"m"}, MaxModelLen: 64, Vocab: tok.Size(), BodyLimit: 1 << 20, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Chat: server.Chat{Template: func(map[string]any) ([]tokenizer.Segment, error) { panic("BUG: a template without a message") }},
	}))
	path, body := texts, `{"prompt":"a"}`
	if where == "handler" {
		path, body = chats, chatBody("")
	}
	resp, err := http.Post(hs.URL+path, "application/json", strings.NewReader(body))
	if where == "engine" {
		<-ran // who asked may be answered while the engine's panic is on its way
	}
	t.Fatalf("the process lives on: %v %v", resp, err)
}

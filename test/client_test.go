//go:build clients

package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/worker/workertest"
)

// embedder is a pool of one worker with a model that embeds. %q is its folder.
const embedder = `
pool "embed" {
  driver  = "process"
  devices = "cpu"
  workers = 1
  engine {
    model             = %q
    served_model_name = ["embedder"]
    args              = ["--weights-cache", "off"]
  }
}
`

// thinker is a pool of one worker that takes all that its model says for thoughts.
const thinker = `
pool "think" {
  driver  = "process"
  devices = "cpu"
  workers = 1
  engine {
    served_model_name = ["thinker"]
    args              = ["--reasoning-parser", "deepseek_r1"]
  }
}
`

// demoTokens is the size of the demonstration model's vocabulary.
const demoTokens = 1536

// programs are the clients, by the environment that they are installed in.
var programs = []struct{ home, name string }{
	{"python", "openai_client.py"}, {"python", "batches_client.py"}, {"python", "agents_client.py"}, {"python", "langchain_client.py"},
	{"python", "anthropic_client.py"}, {"python", "pydanticai_client.py"}, {"openai2", "llamaindex_client.py"}, {"openai2", "instructor_client.py"},
	{"node", "openai_client.mjs"}, {"node", "batches_client.mjs"}, {"node", "aisdk_client.mjs"}, {"node", "codex_client.mjs"},
}

// TestClients drives a door, two workers of the demonstration model that take turns
// meanwhile, one that embeds and one that thinks, with the clients that users have. Each
// is a program that repeats no request and ends with "ok" when every one of its
// assertions held; within it falls at least one turn of each worker.
func TestClients(t *testing.T) {
	folder := t.TempDir()
	if err := workertest.WriteFolder(folder, "../worker/model/testdata/qwen3_embed.json", demoTokens); err != nil {
		t.Fatal(err)
	}
	s := start(t, strings.Replace(twoWorkers, "%s", `"--enable-auto-tool-choice", "--tool-call-parser", "hermes"`, 1)+fmt.Sprintf(embedder, folder)+thinker)
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join("../build/clients", p.home)); err != nil {
				t.Skipf("%v; `make test` installs it", err)
			}
			turned := rotations(t, s)
			client(t, s.Door, programOf(t, p.home, p.name)...)
			turned()
		})
	}
}

// rotations has the workers of the chat pool take their turns, one rotation after the
// other, until the function that it returns is called. At least one is whole by then:
// a client that is done sooner has met its beginning.
func rotations(t *testing.T, s *system) (end func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	stop, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			out, err := exec.CommandContext(ctx, built.Path(t, "roundhouse"), "rotate", "chat", "--admin", s.Admin).CombinedOutput()
			if err != nil {
				failed <- fmt.Errorf("rotate: %w\n%s", err, out)
				return
			}
			select {
			case <-stop:
				failed <- nil
				return
			default:
			}
		}
	}()
	return func() {
		t.Helper()
		defer cancel()
		close(stop)
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

// programOf is the command of a program in one of the environments.
func programOf(t *testing.T, home, program string) []string {
	t.Helper()
	if home != "node" {
		return []string{filepath.Join("../build/clients", home, "bin/python"), "clients/python/" + program}
	}
	// Node finds its packages beside the program that it runs, so the program
	// is run as a copy in the folder where they were installed.
	text, err := os.ReadFile("clients/node/" + program)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join("../build/clients/node", program)
	if err := os.WriteFile(copied, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{"node", copied}
}

// client runs one program against the server at url.
func client(t *testing.T, url string, command ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "BASE_URL="+url+"/v1", "MODEL=roundhouse-demo", "EMBEDDER=embedder", "THINKER=thinker", "TOKENIZER=../worker/demo/model", "HF_HUB_OFFLINE=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "ok") {
		t.Fatalf("%v: %v", cmd.Args, errors.Join(err, ctx.Err()))
	}
}

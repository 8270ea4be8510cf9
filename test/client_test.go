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

// demoTokens is the size of the demonstration model's vocabulary.
const demoTokens = 1536

// TestClients drives a door, two workers of the demonstration model and one
// that embeds with the clients that users have. Each is a program that ends
// with "ok" when every one of its assertions held.
func TestClients(t *testing.T) {
	folder := t.TempDir()
	if err := workertest.WriteFolder(folder, "../worker/model/testdata/qwen3_embed.json", demoTokens); err != nil {
		t.Fatal(err)
	}
	s := start(t, strings.Replace(twoWorkers, "%s", `"--enable-auto-tool-choice", "--tool-call-parser", "hermes"`, 1)+fmt.Sprintf(embedder, folder))
	for _, program := range []string{"openai_client.py", "langchain_client.py", "anthropic_client.py", "openai_client.mjs", "aisdk_client.mjs"} {
		t.Run(program, func(t *testing.T) { client(t, s, program) })
	}
}

// client runs one program.
func client(t *testing.T, s *system, program string) {
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	var cmd *exec.Cmd
	if strings.HasSuffix(program, ".py") {
		python := "../build/clients/python/bin/python"
		installed(t, python)
		cmd = exec.CommandContext(ctx, python, "clients/python/"+program)
	} else {
		// Node finds its packages beside the program that it runs, so the program
		// is run as a copy in the folder where they were installed.
		home := "../build/clients/node"
		installed(t, filepath.Join(home, "node_modules"))
		text, err := os.ReadFile("clients/node/" + program)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(home, program)
		if err := os.WriteFile(copied, text, 0o644); err != nil {
			t.Fatal(err)
		}
		cmd = exec.CommandContext(ctx, "node", copied)
	}
	cmd.Env = append(os.Environ(), "BASE_URL="+s.Door+"/v1", "MODEL=roundhouse-demo", "EMBEDDER=embedder")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "ok") {
		t.Fatalf("%v: %v", cmd.Args, errors.Join(err, ctx.Err()))
	}
}

// installed skips a test whose client is not there.
func installed(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not there; `make test` installs it", path)
	}
}

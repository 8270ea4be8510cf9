//go:build clients

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// client runs a client program against two workers of the demonstration model;
// it ends with "ok" when every one of its assertions held. installed is what
// `make test` brings in for it.
func client(t *testing.T, installed string, argv ...string) {
	t.Helper()
	if _, err := os.Stat(installed); err != nil {
		t.Skipf("%s is not there; `make test` installs it", installed)
	}
	s := start(t, strings.Replace(twoWorkers, "%s", "", 1))
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "BASE_URL="+s.Door+"/v1", "MODEL=roundhouse-demo")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "ok") {
		t.Fatalf("%v: %v", argv, err)
	}
}

func TestClientOpenAIPython(t *testing.T) {
	python := "../build/clients/python/bin/python"
	client(t, python, python, "clients/python/openai_client.py")
}

// Node finds its packages beside the program that it runs, so the program is
// run as a copy in the folder where they were installed.
func TestClientOpenAINode(t *testing.T) {
	home := "../build/clients/node"
	program, err := os.ReadFile("clients/node/openai_client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(home, "openai_client.mjs")
	if _, err := os.Stat(home); err == nil {
		if err := os.WriteFile(copied, program, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	client(t, filepath.Join(home, "node_modules", "openai"), "node", copied)
}

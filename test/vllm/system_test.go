//go:build vllm

package vllm

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"roundhouse/test/program"
	"roundhouse/test/system"
	"roundhouse/test/vllm/kinds"
)

var folder = flag.String("vllm", "../../build/vllm", "where vLLM is installed")

var built program.Set

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	built.Remove()
	os.Exit(code)
}

// start runs two servers of a model behind a door. pool is what stands in the pool
// block besides.
func start(t *testing.T, model, pool string, flags ...string) *system.System {
	t.Helper()
	home, err := filepath.Abs(*folder)
	if err == nil {
		_, err = os.Stat(filepath.Join(home, "bin", "vllm"))
	}
	if err != nil {
		t.Fatalf("%v; `make test-vllm` installs it", err)
	}
	command, err := json.Marshal(append([]string{
		filepath.Join(home, "bin", "vllm"), "serve", model, "--served-model-name", kinds.Model, "--port", "$PORT",
		"--enforce-eager", "--max-model-len", "4096", "--max-num-batched-tokens", "1024", "--dtype", "bfloat16", "--max-num-seqs", "64",
		"--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--structured-outputs-config", `{"backend":"xgrammar","disable_any_whitespace":true}`,
	}, flags...))
	if err != nil {
		t.Fatal(err)
	}
	return system.Start(t, built.Path(t, "roundhouse"), `  policy = "round_robin"`, fmt.Sprintf(`
supervisor {
  parallel = 2
}

pool "vllm" {
  driver      = "process"
  devices     = "cpu"
  workers     = 2
  command     = %s
  environment = {
    VLLM_CPU_KVCACHE_SPACE = "1", VLLM_CPU_OMP_THREADS_BIND = "nobind", OMP_NUM_THREADS = "1", HF_HUB_OFFLINE = "1", VLLM_NO_USAGE_STATS = "1"
  }
  rotation {
    drain_timeout = "3s"
    stop_grace    = "20s"
    ready_timeout = %q
  }
  %s
}
`, command, time.Hour, pool))
}

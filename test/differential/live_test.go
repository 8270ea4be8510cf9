//go:build vllm

package differential

import (
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"roundhouse/test/ports"
)

var folder = flag.String("vllm", "../../build/vllm", "where vLLM is installed")

// TestLive holds our worker to a real vLLM, as TestRecorded does to what one
// answered.
func TestLive(t *testing.T) {
	python, err := filepath.Abs(*folder)
	if err != nil {
		t.Fatal(err)
	}
	address := ports.Address(t)
	cmd := exec.Command(filepath.Join(python, "bin", "vllm"), "serve", "../../worker/demo/model", "--served-model-name", "roundhouse-demo", "--port", port(t, address), "--enforce-eager",
		"--max-model-len", "4096", "--max-num-seqs", "32", "--dtype", "bfloat16", "--enable-auto-tool-choice", "--tool-call-parser", "hermes")
	cmd.Env = append(cmd.Environ(), "VLLM_CPU_KVCACHE_SPACE=1", "VLLM_CPU_OMP_THREADS_BIND=nobind", "OMP_NUM_THREADS=1", "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its engine is a process of its own
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; `make test-vllm` installs it", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	url := "http://" + address
	for {
		if res, err := http.Get(url + "/health"); err == nil {
			_ = res.Body.Close()
			break
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("vLLM ended: %v", err)
		case <-time.After(time.Second):
		}
	}
	requests, err := Lines[Request]("testdata/requests.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var answers []Answer
	for i := range requests {
		a, err := requests[i].Ask(url)
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, *a)
	}
	hold(t, requests, answers)
}

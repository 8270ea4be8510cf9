//go:build vllm

package differential

import (
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"roundhouse/test/ports"
)

var folder = flag.String("vllm", "../../build/vllm", "where vLLM is installed")

// TestLive holds our worker to a real vLLM, as TestRecorded does to what one
// answered.
func TestLive(t *testing.T) {
	for _, s := range setups {
		t.Run("setup "+s.name, s.live)
	}
}

func (s *setup) live(t *testing.T) {
	python, err := filepath.Abs(*folder)
	if err != nil {
		t.Fatal(err)
	}
	address := ports.Address(t)
	cmd := exec.Command(filepath.Join(python, "bin", "vllm"), slices.Concat([]string{"serve", "../../worker/demo/model", "--port", port(t, address), "--enforce-eager"}, common, s.flags)...)
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
	requests := s.requests(t)
	var answers []Answer
	for i := range requests {
		a, err := requests[i].Ask(url)
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, *a)
	}
	s.hold(t, requests, answers)
}

package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

// TestMigrationUnderLoad takes two containers over that run already, as
// llm-scaler's do, serves them as they are, and replaces each in its turn,
// twice, while clients go on asking: nothing is lost, nothing refused.
func TestMigrationUnderLoad(t *testing.T) {
	l := engineFor(t)
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir, "roundhouse/cmd/roundhouse")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ports := []int{port(t), port(t), port(t), port(t)}
	l.stranger(t, "rh_vllm_1", true, "--port", strconv.Itoa(ports[0]))
	l.stranger(t, "rh_vllm_2", true, "--port", strconv.Itoa(ports[1]))
	door, admin := fmt.Sprintf("http://127.0.0.1:%d", ports[2]), fmt.Sprintf("http://127.0.0.1:%d", ports[3])
	config := fmt.Sprintf(`
state_dir = %q
door {
  listen = "127.0.0.1:%d"
}
admin {
  listen = "127.0.0.1:%d"
}
pool "vllm" {
  driver       = "docker"
  devices      = "cpu"
  image        = %q
  pull_policy  = "never"
  network_mode = "host"
  engine {
    served_model_name = ["fake"]
  }
  worker "rh_vllm_1" {
    port     = %d
    takeover = "rh_vllm_1"
  }
  worker "rh_vllm_2" {
    port     = %d
    takeover = "rh_vllm_2"
  }
}
`, filepath.Join(dir, "state"), ports[2], ports[3], testImage, ports[0], ports[1])
	path := filepath.Join(dir, "config.hcl")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	up := exec.Command(filepath.Join(dir, "roundhouse"), "up", "-c", path)
	up.Env = append(os.Environ(), "DOCKER_HOST="+l.host.URL)
	var log strings.Builder
	up.Stdout, up.Stderr = &log, &log
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = up.Process.Signal(syscall.SIGTERM)
		err := up.Wait()
		if err != nil || t.Failed() {
			t.Errorf("up ended with %v and wrote\n%s", err, log.String())
		}
		l.removeOurs(t, "vllm")
	})
	until(t, "both are served as they are", func() bool { return states(admin) == "1 ready 1 ready" && ask(door) == nil })

	var ending atomic.Bool
	var asked atomic.Int64
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for !ending.Load() {
				if err := ask(door); err != nil {
					t.Errorf("after %d answers: %v", asked.Load(), err)
					return
				}
				asked.Add(1)
			}
		})
	}
	for turn := 2; turn <= 3; turn++ {
		res, err := http.Post(admin+"/api/pools/vllm/rotate", "application/json", nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		res.Body.Close()
		want := fmt.Sprintf("%d ready %d ready", turn, turn)
		until(t, want, func() bool { return states(admin) == want })
	}
	ending.Store(true)
	clients.Wait()
	t.Logf("%d answers over 4 turns, the first two of them from containers of another's: 0 lost, 0 refused", asked.Load())
}

func port(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// states writes each worker's generation and state in a line.
func states(admin string) string {
	res, err := http.Get(admin + "/api/workers")
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	var v struct {
		Workers []struct {
			Generation int
			State      string
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
		return err.Error()
	}
	var out []string
	for _, w := range v.Workers {
		out = append(out, fmt.Sprint(w.Generation, " ", w.State))
	}
	return strings.Join(out, " ")
}

func ask(door string) error {
	client := http.Client{Timeout: 30 * time.Second}
	res, err := client.Post(door+"/v1/completions", "application/json", strings.NewReader(`{"model":"fake","prompt":"a"}`))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(data), "choices") {
		return fmt.Errorf("%s %s %w", res.Status, data, err)
	}
	return nil
}

// removeOurs removes the containers of a pool.
func (l *lab) removeOurs(t *testing.T, pool string) {
	t.Helper()
	list, err := l.client.ContainerList(context.Background(), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelPool+"="+pool))})
	if err != nil {
		t.Error(err)
	}
	for _, c := range list {
		if err := l.client.ContainerRemove(context.Background(), c.ID, container.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	}
}

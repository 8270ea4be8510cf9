package test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"roundhouse/test/ports"
)

// TestQuickStart starts the shipped quick start as `make run` does, pastes the
// curl line that it prints, and streams a chat.
func TestQuickStart(t *testing.T) {
	door := ports.Address(t)
	out := newOutput()
	cmd := exec.Command(built.Path(t, "roundhouse"), "up", "-c", "../configs/quickstart.hcl",
		"--listen", door, "--admin", ports.Address(t), "--state-dir", t.TempDir())
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &system{t: t, cmd: cmd, out: out, Door: "http://" + door}
	t.Cleanup(s.stop)

	curl := regexp.MustCompile(`(?m)^\s*(curl .*)$`)
	out.wait(t, "a curl line", curl.MatchString)
	line := curl.FindStringSubmatch(out.String())[1]
	answer, err := exec.Command("sh", "-c", line).CombinedOutput()
	if err != nil || !strings.Contains(string(answer), "content") {
		t.Fatalf("pasted %s\ngot %s %v", line, answer, err)
	}
	if err := count(t.Context(), s.Door, 1, 40); err != nil {
		t.Fatal(err)
	}
	// The state folder lies below one that only its owner passes, and the door, which
	// is another user if root has started it, keeps files and batches there.
	res, err := http.Get(s.Door + "/v1/files")
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != http.StatusOK {
		t.Errorf("/v1/files: %s", res.Status)
	}
}

// up runs `roundhouse up` on a configuration that cannot work and returns what
// it printed and how it ended.
func up(t *testing.T, path string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, built.Path(t, "roundhouse"), "up", "-c", path)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("roundhouse up did not end; printed:\n%s", &out)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// TestStartsThatCannotWork: each ends at once, names what is wrong and where,
// and leaves no process behind.
func TestStartsThatCannotWork(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()

	f := func(name string, breakIt func(t *testing.T, path, text string) string, wantCode int, want ...string) {
		t.Run(name, func(t *testing.T) {
			path, _, _ := writeConfig(t, fmt.Sprintf(twoWorkers, ""))
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(breakIt(t, path, string(text))), 0o600); err != nil {
				t.Fatal(err)
			}
			out, code := up(t, path)
			if code != wantCode {
				t.Errorf("exit code %d; want %d; printed:\n%s", code, wantCode, out)
			}
			for _, w := range want {
				if !strings.Contains(out, w) {
					t.Errorf("does not say %q; printed:\n%s", w, out)
				}
			}
			var left []byte
			poll(t, "no process is left behind", func() bool {
				left, _ = exec.Command("pgrep", "-f", filepath.Dir(path)).Output()
				return len(left) == 0
			}, func() string { return "there are " + string(left) })
		})
	}

	f("config error", func(_ *testing.T, _, text string) string {
		return strings.Replace(text, "workers = 2", "worker_count = 2", 1)
	}, 2, "roundhouse.hcl:", "worker_count", "workers")

	listen := regexp.MustCompile(`listen = "[^"]*"`)
	f("busy port", func(_ *testing.T, _, text string) string {
		first := true
		return listen.ReplaceAllStringFunc(text, func(old string) string {
			if !first {
				return old
			}
			first = false
			return fmt.Sprintf("listen = %q", busy.Addr())
		})
	}, 1, busy.Addr().String(), "in use")

	withModel := func(text, dir string) string {
		return strings.Replace(text, "served_model_name", fmt.Sprintf("model = %q\n    served_model_name", dir), 1)
	}
	f("missing model", func(_ *testing.T, path, text string) string {
		return withModel(text, filepath.Join(filepath.Dir(path), "no-model"))
	}, 1, "no-model")

	f("model cut short", func(t *testing.T, path, text string) string {
		dir := filepath.Join(filepath.Dir(path), "cut-model")
		copyModel(t, dir)
		weights := filepath.Join(dir, "model.safetensors")
		if err := os.Truncate(weights, 100_000); err != nil {
			t.Fatal(err)
		}
		return withModel(text, dir)
	}, 1, "model.safetensors")
}

// copyModel puts the demonstration model's files into a folder.
func copyModel(t *testing.T, dir string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS("../worker/demo/model")); err != nil {
		t.Fatal(err)
	}
}

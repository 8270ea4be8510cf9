package test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestProfile has `roundhouse profile` profile one of two workers that serve. The public
// door refuses the paths that do it, whoever asks; so does the engine that was not
// started for it.
func TestProfile(t *testing.T) {
	dir := t.TempDir()
	settings := strconv.Quote(fmt.Sprintf(`{"profiler":"torch","torch_profiler_dir":%q}`, dir))
	s := start(t, strings.ReplaceAll(fmt.Sprintf(twoWorkers, `"--profiler-config", `+settings), "workers = 2", "workers = 1"))
	for _, path := range []string{"/start_profile", "/stop_profile", "/v1/start_profile"} {
		res, err := http.Post(s.Door+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("the door answers %s with %s", path, res.Status)
		}
	}
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := exec.Command(built.Path(t, "roundhouse"), append([]string{"profile", "--admin", strings.TrimPrefix(s.Admin, "http://")}, args...)...)
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		return out.String(), err
	}
	done, ended := make(chan struct{}), make(chan error, 1)
	go func() { // answers all the while, for a profile of an idle worker has no steps
		for {
			if err := count(t.Context(), s.Door, 1, 40); err != nil {
				ended <- err
				return
			}
			select {
			case <-done:
				ended <- nil
				return
			default:
			}
		}
	}()
	into := filepath.Join(dir, "mine")
	out, err := run("chat/1", "--seconds", "1", "-o", into)
	close(done)
	if err != nil || !strings.Contains(out, "tokens/s before") {
		t.Fatalf("%v: %s", err, out)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, name := range []string{"summary.txt", "trace.json.gz", "cpu.pprof", "heap.pprof", "block.pprof", "mutex.pprof"} {
		if info, err := os.Stat(filepath.Join(into, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if spans := opens(t, filepath.Join(into, "trace.json.gz")); spans["step"] == 0 || spans["schedule"] != spans["step"] || len(spans) < 5 {
		t.Errorf("the trace has the spans %v", spans)
	}
	if out, err := exec.Command("go", "tool", "pprof", "-top", filepath.Join(into, "cpu.pprof")).CombinedOutput(); err != nil || !strings.Contains(string(out), "flat%") {
		t.Errorf("pprof does not read the profile of the processor: %v %s", err, out)
	}
}

package launch

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// asked is the answer to a POST of a body, as a client that accepts some type gets it.
func asked(t *testing.T, url, accept, key, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(text)
}

// A profile has the time of each operation, and every step in a trace of Chrome's form
// whose times lie in the order in which they were; the files lie where vLLM's would.
func TestProfile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	hs := demoServer(t, "--profiler-config.profiler", "torch", "--profiler-config.torch_profiler_dir", dir)
	f := func(accept string) string {
		t.Helper()
		if code, text := asked(t, hs.URL+"/start_profile", accept, "", ""); code != 200 || text != "" {
			t.Fatalf("start: %d %s", code, text)
		}
		if code, text := asked(t, hs.URL+"/start_profile", accept, "", ""); code != 409 || !strings.Contains(text, "already") {
			t.Errorf("a second start: %d %s", code, text)
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if code, text := asked(t, hs.URL+"/v1/completions", "", "", `{"prompt":"one two three","max_tokens":20,"ignore_eos":true}`); code != 200 {
					t.Errorf("%d %s", code, text)
				}
			})
		}
		all.Wait()
		code, text := asked(t, hs.URL+"/stop_profile", accept, "", "")
		if code != 200 {
			t.Fatalf("stop: %d %s", code, text)
		}
		if code, text := asked(t, hs.URL+"/stop_profile", accept, "", ""); code != 409 {
			t.Errorf("a second stop: %d %s", code, text)
		}
		return text
	}
	if text := f("*/*"); text != "" {
		t.Errorf("vLLM answers nothing to stop, ours %q", text)
	}
	written, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(written) != 7 {
		t.Errorf("%v %v; want seven files", written, err)
	}
	files := map[string][]byte{}
	text := f("application/zip, */*")
	z, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range z.File {
		in, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[file.Name], err = io.ReadAll(in); err != nil || len(files[file.Name]) == 0 {
			t.Errorf("%s is empty: %v", file.Name, err)
		}
	}
	if s := string(files["summary.txt"]); !strings.Contains(s, "attention") || !strings.Contains(s, "linear 256 to 1024") {
		t.Errorf("the summary: %s", s)
	}
	checkTrace(t, files["trace.json.gz"])
	if now, _ := filepath.Glob(filepath.Join(dir, "*")); !slices.Equal(now, written) {
		t.Errorf("who takes an archive leaves %v beside %v", now, written)
	}
}

// checkTrace holds a trace to what a reader of it expects.
func checkTrace(t *testing.T, data []byte) {
	t.Helper()
	in, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct {
			Name, Ph string
			TS, Dur  float64
			PID, TID int
			Args     map[string]any
		}
	}
	if err := json.NewDecoder(in).Decode(&trace); err != nil {
		t.Fatal(err)
	}
	ends, steps, inside := map[int]float64{}, 0, 0
	var from, to float64
	for _, e := range trace.TraceEvents {
		if e.Ph != "X" {
			continue
		}
		const rounding = 0.002
		if e.TS < ends[e.TID]-rounding || e.Dur <= 0 {
			t.Errorf("%s at %g for %g on track %d, which was busy until %g", e.Name, e.TS, e.Dur, e.TID, ends[e.TID])
		}
		ends[e.TID] = e.TS + e.Dur
		switch {
		case e.Name == "step":
			steps, from, to = steps+1, e.TS, e.TS+e.Dur
			if n, _ := e.Args["tokens"].(float64); n < 1 {
				t.Errorf("a step of %v tokens", e.Args["tokens"])
			}
		case e.TID >= 10:
			if inside++; e.TS < from-rounding || e.TS+e.Dur > to+rounding {
				t.Errorf("%s at %g for %g is outside its step, %g to %g", e.Name, e.TS, e.Dur, from, to)
			}
		}
	}
	if steps < 20 || inside < 20*steps {
		t.Errorf("%d steps with %d operations", steps, inside)
	}
}

// Profiles are for who has the key, and there only where the start said so; a bounded one
// ends and is written by itself.
func TestProfileGuarded(t *testing.T) {
	hs := demoServer(t)
	if code, _ := asked(t, hs.URL+"/start_profile", "", "", ""); code != 404 {
		t.Errorf("without the flag: %d", code)
	}
	dir := t.TempDir()
	o, err := ParseServe([]string{"--api-key", "k"}, func(name string) string {
		return map[string]string{"VLLM_TORCH_PROFILER_DIR": dir}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	hs = serveOpen(t, o, quiet)
	if code, _ := asked(t, hs.URL+"/start_profile", "", "", ""); code != 401 {
		t.Errorf("without the key: %d", code)
	}
	for _, body := range []string{"[", `{"max_iterations":-1}`, `{"delay_iterations":"a"}`, `{"profile_prefix":"../a"}`} {
		if code, text := asked(t, hs.URL+"/start_profile", "", "k", body); code != 400 {
			t.Errorf("%s: %d %s", body, code, text)
		}
	}
	if code, text := asked(t, hs.URL+"/start_profile", "", "k", `{"max_iterations":3,"delay_iterations":1,"profile_prefix":"mine"}`); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	code, text := asked(t, hs.URL+"/v1/completions", "", "k", `{"prompt":"a b","max_tokens":9,"ignore_eos":true}`)
	if code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	for { // until it is written, or the test's own time ends
		if data, err := os.ReadFile(filepath.Join(dir, "mine.summary.txt")); err == nil && len(data) > 0 {
			if !strings.HasPrefix(string(data), "3 steps in ") {
				t.Errorf("the summary of three steps: %s", data)
			}
			break
		}
	}
	for { // the last file
		if _, err := os.Stat(filepath.Join(dir, "mine.goroutine.pprof")); err == nil {
			return
		}
	}
}

package test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// plugin builds one of the examples into a folder and returns its block.
func plugin(t *testing.T, dir, name, kind string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	build := exec.Command("go", "build", "-o", path, "roundhouse/plugins/examples/"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return fmt.Sprintf("plugin %q {\n  kind   = %q\n  path   = %q\n  sha256 = \"%x\"\n}\n", name, kind, path, sum)
}

// TestPlugins runs the whole program with four of the examples: a filter that asks for
// keys, one that redacts, a policy that orders the workers, and a notifier.
func TestPlugins(t *testing.T) {
	var mu sync.Mutex
	var told strings.Builder
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		io.Copy(&told, r.Body)
	}))
	defer receiver.Close()

	// The door's own user reads the folder where a plugin lies.
	dir, err := os.MkdirTemp("", "roundhouse-plugins-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("key-a"))
	for name, text := range map[string]string{
		"keys.txt":     "team-a " + hex.EncodeToString(sum[:]) + "\n",
		"webhook.json": fmt.Sprintf(`{"url":%q,"secret":"s"}`, receiver.URL),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pool := strings.Replace(fmt.Sprintf(twoWorkers, ""), "workers = 2", "workers = 2\n  policy  = \"plugin:leastlatency\"", 1)
	s := start(t, plugin(t, dir, "keyauth", "filter")+plugin(t, dir, "redactor", "filter")+
		plugin(t, dir, "leastlatency", "policy")+plugin(t, dir, "webhook", "notifier")+pool)

	ask := func(key string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.Door+"/v1/chat/completions",
			strings.NewReader(`{"model":"roundhouse-demo","temperature":0,"messages":[{"role":"user","content":"Count from 1 to 9 by 1."}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	// A filter that is late is as good as none, and refuses: a client asks again.
	patient := func(key string) (status int, body string) {
		t.Helper()
		poll(t, "the filters answer", func() bool { status, body = ask(key); return status != 503 }, func() string { return body })
		return status, body
	}
	if status, body := patient("key-a"); status != 200 || !strings.Contains(body, "1 2 3 4 5 6 7 8 9") {
		t.Errorf("with a key: %d %s", status, body)
	}
	if status, body := patient("another"); status != 401 || !strings.Contains(body, `"error"`) {
		t.Errorf("without a key: %d %s", status, body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	if out, err := exec.CommandContext(ctx, built.Path(t, "roundhouse"), "rotate", "chat", "--admin", s.Admin).CombinedOutput(); err != nil {
		t.Errorf("rotate: %v\n%s", err, out)
	}
	var list string
	poll(t, "all four run", func() bool {
		out, err := exec.CommandContext(ctx, built.Path(t, "roundhouse"), "plugins", "--admin", s.Admin).CombinedOutput()
		list = string(out)
		return err == nil && strings.Count(list, "running") == 4
	}, func() string { return list })
	poll(t, "the rotation told to the webhook", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(told.String(), "rotation")
	}, told.String)
}

// TestPluginDriver runs the workers by a driver that lives in a plugin, and rotates
// them.
func TestPluginDriver(t *testing.T) {
	dir := t.TempDir()
	block := plugin(t, dir, "localdriver", "driver")
	pool := strings.Replace(fmt.Sprintf(twoWorkers, ""), `driver  = "process"`, `driver  = "plugin:localdriver"`, 1)
	s := start(t, block+pool)
	if err := count(t.Context(), s.Door, 1, 40); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	if out, err := exec.CommandContext(ctx, built.Path(t, "roundhouse"), "rotate", "chat", "--admin", s.Admin).CombinedOutput(); err != nil {
		t.Errorf("rotate: %v\n%s", err, out)
	}
	if err := count(t.Context(), s.Door, 1, 40); err != nil {
		t.Error(err)
	}
	out, err := exec.CommandContext(ctx, built.Path(t, "roundhouse"), "plugins", "--admin", s.Admin).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "localdriver") || !strings.Contains(string(out), "running") {
		t.Errorf("roundhouse plugins: %v\n%s", err, out)
	}
}

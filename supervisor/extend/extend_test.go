package extend

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundhouse/configs"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/journal"
	"roundhouse/test/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// build compiles an example into a folder of the test's own.
func build(t *testing.T, name, kind string) configs.Plugin {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "build", "-o", path, "roundhouse/plugins/examples/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v\n%s", name, err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return configs.Plugin{Name: name, Kind: kind, Path: path, SHA256: hex.EncodeToString(sum[:]), OnFailure: "closed"}
}

func open(t *testing.T, all ...configs.Plugin) *Set {
	t.Helper()
	s := New("/bin/false", slog.New(slog.NewTextHandler(io.Discard, nil)))
	t.Cleanup(s.Close)
	if err := s.Apply(all); err != nil {
		t.Fatal(err)
	}
	return s
}

// A driver in a plugin does what every driver does.
func TestDriver(t *testing.T) {
	s := open(t, build(t, "localdriver", "driver"))
	if _, err := s.Driver("another", "i"); err == nil {
		t.Error("a driver that is not there was opened")
	}
	d, err := s.Driver("localdriver", "i")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	changed := func() {
		t.Helper()
		select {
		case <-d.Changed():
		case <-ctx.Done():
			t.Fatal("no hint came")
		}
	}
	changed() // the events begin

	spec := driver.Spec{Pool: "chat", Name: "1", Generation: 3, Hash: "h", Port: 9,
		Container: configs.Container{Command: []string{"/bin/sh", "-c", "echo $WORD; exec sleep 1000"}, Environment: map[string]string{"WORD": "hello"}}}
	if err := d.Start(ctx, spec); err != nil {
		t.Fatal(err)
	}
	only := func() driver.Instance {
		t.Helper()
		list, err := d.List(ctx)
		if err != nil || len(list) != 1 {
			t.Fatalf("list %v, %v", list, err)
		}
		return list[0]
	}
	if i := only(); i.ID != "chat/1" || i.Generation != 3 || i.Hash != "h" || !i.Running || i.URL != "http://127.0.0.1:9" {
		t.Errorf("after start %+v", i)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for text := ""; text != "hello\n"; { // the worker writes when it comes to it
		logs, err := d.Logs(ctx, "chat/1", driver.LogOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(logs)
		if text = string(b); err != nil {
			t.Fatalf("logs %q, %v", text, err)
		}
		<-tick.C
	}
	if err := d.Stop(ctx, "chat/1", 3, time.Minute); err != nil {
		t.Fatal(err)
	}
	changed()
	if i := only(); i.Running || !i.Released || !strings.Contains(i.Ended, "terminated") {
		t.Errorf("after stop %+v", i)
	}
	if err := d.Stop(ctx, "chat/1", 3, time.Second); err != nil {
		t.Errorf("stopping what has ended: %v", err)
	}
}

// Events reach the notifier in their order, through one that changes.
func TestNotifier(t *testing.T) {
	got := make(chan string, 16)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
	}))
	defer receiver.Close()
	plugin := build(t, "webhook", "notifier")
	settings := fmt.Sprintf(`{"url":%q,"secret":"s"}`, receiver.URL)
	if err := os.WriteFile(filepath.Join(filepath.Dir(plugin.Path), "webhook.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, plugin)
	tell := func(id uint64, kind, want string) {
		t.Helper()
		s.Notify(journal.Event{ID: id, At: time.Unix(1, 0), Kind: kind, Worker: "chat/1", Text: "words", Who: "supervisor"})
		select {
		case body := <-got:
			for _, w := range []string{want, `"number":"` + fmt.Sprint(id) + `"`, `"subject":"chat/1"`} {
				if !strings.Contains(strings.ReplaceAll(body, `": "`, `":"`), w) {
					t.Errorf("the receiver got %s; want %s in it", body, w)
				}
			}
		case <-time.After(time.Minute):
			t.Fatal("the event did not arrive")
		}
	}
	tell(1, "crashed", `"severity":"error"`)
	if err := s.Apply([]configs.Plugin{plugin}); err != nil { // a reload that changes nothing
		t.Fatal(err)
	}
	tell(2, "ready", `"severity":"info"`)
	if n := len(s.Stats()); n != 1 {
		t.Errorf("%d plugins in the list", n)
	}
}

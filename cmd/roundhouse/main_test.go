package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"roundhouse/test/leaks"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"roundhouse": main})
}

// TestScripts runs the command lines of testdata/script, each beside an admin
// API that answers with the script's own files.
func TestScripts(t *testing.T) {
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections() // other tests' doors
		leaks.None(t, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
	})
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			f := &fakeAdmin{dir: filepath.Join(env.WorkDir, "api"), log: filepath.Join(env.WorkDir, "requests")}
			server := httptest.NewServer(f)
			env.Defer(server.Close)
			env.Setenv("ADMIN", strings.TrimPrefix(server.URL, "http://"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("TZ", "UTC")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits CODE COMMAND... runs a command that must end with CODE.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		var ok bool
		if got, ok = exitCode(err); !ok {
			ts.Fatalf("%v", err)
		}
	}
	if got != want {
		ts.Fatalf("ended with %d; want %d", got, want)
	}
}

func exitCode(err error) (int, bool) {
	e, ok := err.(interface{ ExitCode() int })
	if !ok {
		return 0, false
	}
	return e.ExitCode(), true
}

// fakeAdmin answers METHOD /api/a/b from the file METHOD_a_b, or from
// METHOD_a_b.1, METHOD_a_b.2 … in turn, the last one for ever. A first line
// "status N" sets the status. What was asked goes into the log, with its body.
type fakeAdmin struct {
	dir, log string

	mu    sync.Mutex
	asked map[string]int
}

func (f *fakeAdmin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	name := r.Method + "_" + strings.ReplaceAll(strings.TrimPrefix(r.URL.Path, "/api/"), "/", "_")
	f.note(strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, r.URL, body)))
	if f.asked == nil {
		f.asked = map[string]int{}
	}
	f.asked[name]++
	text, err := os.ReadFile(filepath.Join(f.dir, name))
	for n := f.asked[name]; err != nil && n > 0; n-- {
		text, err = os.ReadFile(filepath.Join(f.dir, fmt.Sprintf("%s.%d", name, n)))
	}
	if err != nil {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	if rest, ok := bytes.CutPrefix(text, []byte("status ")); ok {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		status, err := strconv.Atoi(string(line))
		if err != nil {
			panic(err)
		}
		w.WriteHeader(status)
		text = after
	}
	_, _ = w.Write(text)
}

func (f *fakeAdmin) note(line string) {
	log, err := os.OpenFile(f.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer log.Close()
	fmt.Fprintln(log, line)
}

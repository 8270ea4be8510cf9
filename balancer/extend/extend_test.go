package extend

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"roundhouse/configs"
	"roundhouse/plugins"
	"roundhouse/plugins/pb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patient waits for a plugin's call as long as a busy machine may take.
var patient = plugins.Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Deadline: time.Minute}

// build compiles a plugin into a folder of the test's own.
func build(t *testing.T, source, kind, onFailure string) configs.Plugin {
	t.Helper()
	name := strings.TrimSuffix(filepath.Base(source), ".go")
	path := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "build", "-o", path, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v\n%s", source, err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return configs.Plugin{Name: name, Kind: kind, Path: path, SHA256: hex.EncodeToString(sum[:]), OnFailure: onFailure}
}

func open(t *testing.T, all ...configs.Plugin) *Set {
	t.Helper()
	return openWith(t, patient, all...)
}

func openWith(t *testing.T, o plugins.Options, all ...configs.Plugin) *Set {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	s, err := Apply(ctx, nil, all, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func request(id, body string) *Request {
	return &Request{ID: id, Method: "POST", Path: "/v1/chat/completions", Body: []byte(body),
		Headers: func(yield func(name, value string) bool) { yield("Authorization", "Bearer k") }}
}

func TestFilterDoesEverything(t *testing.T) {
	plugin := build(t, "testdata/everything.go", "filter", "closed")
	s := open(t, plugin)
	p, refusal := s.Begin(request("one", `{"say":"cat"}`))
	if refusal != nil {
		t.Fatal(refusal)
	}
	if string(p.Body) != `{"say":"dog"}` || p.Priority != "low" || p.Route != "other" || p.Key != "team" {
		t.Errorf("begin left %q, %q, %q, %q", p.Body, p.Priority, p.Route, p.Key)
	}
	// What frames a message, and what would end a line, is not a filter's to set.
	if want := [][2]string{{"x-tenant", "t1"}}; !slices.Equal(p.Headers, want) {
		t.Errorf("headers to the worker %v; want %v", p.Headers, want)
	}
	if got := p.Respond(200, "chat/1"); !slices.Equal(got, [][2]string{{"x-checked", "200"}}) {
		t.Errorf("headers to the client %v", got)
	}
	if got, refusal := p.Chunk([]byte("data: abc\n\n"), false); refusal != nil || string(got) != "DATA: ABC\n\n" {
		t.Errorf("chunk became %q, %v", got, refusal)
	}
	p.End(&Outcome{Status: 200, Outcome: "ok", Generated: 7})

	if _, refusal := s.Begin(request("two", "forbidden")); refusal == nil || refusal.Status != 451 || refusal.Message != "not this" {
		t.Errorf("a denied request: %+v", refusal)
	}
	s.Close()
	ends, err := os.ReadFile(filepath.Join(filepath.Dir(plugin.Path), "ends.txt"))
	if err != nil || string(ends) != "one 200 ok 7\n" {
		t.Errorf("ends %q, %v", ends, err)
	}
}

// A filter that hangs costs its own calls: closed it refuses, open it is passed by.
func TestFilterHangs(t *testing.T) {
	f := func(onFailure string, wantRefused bool) {
		t.Run(onFailure, func(t *testing.T) {
			t.Parallel()
			// Short enough to wait for thrice, long enough for the calls that do not hang.
			bounds := plugins.Options{Log: patient.Log, Deadline: 2 * time.Second}
			s := openWith(t, bounds, build(t, "testdata/everything.go", "filter", onFailure))
			if _, refusal := s.Begin(request("hang-begin", "cat")); (refusal != nil) != wantRefused {
				t.Errorf("begin: %v", refusal)
			}
			p, refusal := s.Begin(request("hang-chunk", "cat"))
			if refusal != nil {
				t.Fatal(refusal)
			}
			got, refusal := p.Chunk([]byte("abc"), true)
			if (refusal != nil) != wantRefused || !wantRefused && string(got) != "abc" {
				t.Errorf("chunk: %q, %v", got, refusal)
			}
			if p, refusal = s.Begin(request("hang-respond", "cat")); refusal != nil {
				t.Fatal(refusal)
			}
			if got := p.Respond(200, ""); got != nil {
				t.Errorf("respond: %v", got)
			}
		})
	}
	f("closed", true)
	f("open", false)
}

// A filter that never came up: the worker set is in force, and requests meet
// what on_failure says.
func TestFilterThatIsNotThere(t *testing.T) {
	f := func(onFailure string, wantRefused bool) {
		t.Run(onFailure, func(t *testing.T) {
			t.Parallel()
			plugin := build(t, "testdata/everything.go", "filter", onFailure)
			plugin.SHA256 = strings.Repeat("0", 64)
			s := open(t, plugin)
			p, refusal := s.Begin(request("one", "cat"))
			if (refusal != nil) != wantRefused {
				t.Errorf("begin: %v", refusal)
			}
			if !wantRefused && p.Body != nil {
				t.Errorf("the body became %q", p.Body)
			}
			p.End(&Outcome{})
		})
	}
	f("closed", true)
	f("open", false)
}

func TestPolicyOrders(t *testing.T) {
	s := open(t, build(t, "../../plugins/examples/leastlatency", "policy", "open"))
	candidates := []*pb.Candidate{{Worker: "chat/1", PredictedTtftSeconds: 2}, {Worker: "chat/2", PredictedTtftSeconds: 1}}
	if got := s.Order("leastlatency", &pb.Request{}, candidates); !slices.Equal(got, []string{"chat/2", "chat/1"}) {
		t.Errorf("order %v", got)
	}
	if got := s.Order("another", &pb.Request{}, candidates); got != nil {
		t.Errorf("a policy that is not there ordered %v", got)
	}
}

// With no plugin configured nothing runs and nothing is asked.
func TestNothingConfigured(t *testing.T) {
	s, err := Apply(t.Context(), nil, nil, patient)
	if s != nil || err != nil {
		t.Fatalf("got %v, %v", s, err)
	}
	p, refusal := s.Begin(request("one", "cat"))
	if p != nil || refusal != nil || p.WantsChunks() || p.Respond(200, "") != nil || s.Order("x", nil, nil) != nil || s.Stats() != nil {
		t.Error("a door without plugins does something for them")
	}
	p.End(&Outcome{})
	s.Close()
}

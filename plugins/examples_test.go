package plugins

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	"roundhouse/plugins/pb"
	"roundhouse/plugins/sdk"
)

// begin asks a filter about a request.
func begin(t *testing.T, p *Plugin, req *pb.BeginRequest) *pb.BeginResponse {
	t.Helper()
	var res *pb.BeginResponse
	err := p.Call(t.Context(), func(ctx context.Context, conn *grpc.ClientConn) (err error) {
		res, err = pb.NewFilterClient(conn).Begin(ctx, req)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// beside writes a plugin's settings into its folder.
func beside(t *testing.T, spec Spec, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(spec.Path), name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestKeyAuthExample(t *testing.T) {
	spec := build(t, "./examples/keyauth")
	spec.Kind = sdk.KindFilter
	sum := func(key string) string { s := sha256.Sum256([]byte(key)); return hex.EncodeToString(s[:]) }
	beside(t, spec, "keys.txt", "# ours\nteam-a "+sum("key-a")+"\n")
	p := run(t, spec, Options{})

	f := func(authorization, wantKey string) {
		t.Helper()
		res := begin(t, p, &pb.BeginRequest{Headers: []*pb.Header{{Name: "authorization", Value: authorization}}})
		if res.GetKey() != wantKey || (wantKey == "") != (res.GetDeny().GetStatus() == 401) {
			t.Errorf("%q: got key %q, denied %v; want key %q", authorization, res.GetKey(), res.GetDeny(), wantKey)
		}
	}
	f("Bearer key-a", "team-a")
	f("Bearer key-b", "")
	f("", "")
	beside(t, spec, "keys.txt", "team-a "+sum("key-a")+"\nteam-b "+sum("key-b")+"\n")
	f("Bearer key-b", "team-b") // the file was changed; no reload
}

func TestRedactorExample(t *testing.T) {
	spec := build(t, "./examples/redactor")
	spec.Kind = sdk.KindFilter
	p := run(t, spec, Options{})
	res := begin(t, p, &pb.BeginRequest{Body: []byte(`{"content":"write to a.b@example.org please"}`)})
	if want := `{"content":"write to [address] please"}`; string(res.GetBody()) != want {
		t.Errorf("got %s; want %s", res.GetBody(), want)
	}
	if res := begin(t, p, &pb.BeginRequest{Body: []byte(`{}`)}); res.Body != nil {
		t.Errorf("a body without an address was replaced by %q", res.Body)
	}
}

func TestWebhookExample(t *testing.T) {
	var tries atomic.Int32
	got := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable) // away at first
			return
		}
		body, _ := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte("s3cret"))
		mac.Write(body)
		if r.Header.Get("X-Roundhouse-Signature") != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
			got <- "a wrong signature"
			return
		}
		got <- string(body)
	}))
	defer receiver.Close()
	spec := build(t, "./examples/webhook")
	spec.Kind = sdk.KindNotifier
	beside(t, spec, "webhook.json", fmt.Sprintf(`{"url":%q,"secret":"s3cret"}`, receiver.URL))
	p := run(t, spec, Options{})
	err := p.Call(t.Context(), func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := pb.NewNotifierClient(conn).Notify(ctx, &pb.NotifyRequest{Number: 7, Kind: "turn", Text: "chat/1 took its turn"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var event struct{ Kind, Text string }
	if body := <-got; json.Unmarshal([]byte(body), &event) != nil || event.Kind != "turn" {
		t.Errorf("the receiver got %s", body)
	}
}

func TestDriverExample(t *testing.T) {
	spec := build(t, "./examples/localdriver")
	spec.Kind = sdk.KindDriver
	p := run(t, spec, Options{})
	call := func(fn func(ctx context.Context, d pb.DriverClient) error) {
		t.Helper()
		err := p.Call(t.Context(), func(ctx context.Context, conn *grpc.ClientConn) error { return fn(ctx, pb.NewDriverClient(conn)) })
		if err != nil {
			t.Fatal(err)
		}
	}
	worker := &pb.WorkerSpec{Instance: "i", Id: "chat/1", Hash: "h", Command: []string{"/bin/sh", "-c", "echo up; exec sleep 1000"}, Port: 9}
	handle := ""
	call(func(ctx context.Context, d pb.DriverClient) error {
		for range 2 { // starting what runs already finds it
			res, err := d.Start(ctx, &pb.StartRequest{Spec: worker})
			if err != nil {
				return err
			}
			if handle != "" && handle != res.GetHandle() {
				t.Errorf("two starts made %s and %s", handle, res.GetHandle())
			}
			handle = res.GetHandle()
		}
		return nil
	})
	inspect := func() (found *pb.Found) {
		call(func(ctx context.Context, d pb.DriverClient) error {
			res, err := d.Inspect(ctx, &pb.InspectRequest{Instance: "i"})
			if len(res.GetWorkers()) == 1 {
				found = res.GetWorkers()[0]
			}
			return err
		})
		return found
	}
	if f := inspect(); f == nil || !f.GetRunning() || f.GetUrl() != "http://127.0.0.1:9" {
		t.Fatalf("after start: %v", f)
	}
	call(func(ctx context.Context, d pb.DriverClient) error {
		_, err := d.Stop(ctx, &pb.StopRequest{Instance: "i", Id: "chat/1", GraceSeconds: 60})
		return err
	})
	if f := inspect(); f == nil || f.GetRunning() || !strings.Contains(f.GetReason(), "terminated") {
		t.Fatalf("after stop: %v", f)
	}
}

// A filter in Python, from the same protos, over the same mutual TLS.
func TestPythonExample(t *testing.T) {
	python, err := filepath.Abs("../build/clients/python/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		t.Skip("Python's grpcio is not there; `make test` installs it")
	}
	text, err := os.ReadFile("examples/python/lengthguard.py")
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("/usr/bin/env python3"), []byte(python), 1)
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "proto"), os.DirFS("proto")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "lengthguard.py")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	p := run(t, Spec{Name: "lengthguard", Kind: sdk.KindFilter, Path: path, SHA256: hex.EncodeToString(sum[:])}, Options{})

	if res := begin(t, p, &pb.BeginRequest{Body: []byte("short")}); res.GetDeny() != nil {
		t.Errorf("a short body was refused: %v", res.GetDeny())
	}
	if res := begin(t, p, &pb.BeginRequest{Body: make([]byte, 10_001)}); res.GetDeny().GetStatus() != 413 {
		t.Errorf("a long body was let pass: %v", res)
	}
}

// A plugin is built outside this tree, with the SDK alone.
func TestOutsideTheTree(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, err := os.ReadFile("examples/leastlatency/main.go")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main.go": string(source),
		"go.sum":  string(sums),
		"go.mod":  "module example.org/nearest\n\ngo 1.26\n\nrequire roundhouse v0.0.0\n\nreplace roundhouse => " + root + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-mod=mod", "-o", "nearest", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "nearest"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	p := run(t, Spec{Name: "nearest", Kind: sdk.KindPolicy, Path: filepath.Join(dir, "nearest"), SHA256: hex.EncodeToString(sum[:])}, Options{})
	if got, err := order(p, "1", &pb.Candidate{Worker: "only"}); err != nil || len(got) != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
}

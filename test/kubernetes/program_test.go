//go:build kubernetes

package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"roundhouse/balancer/sim"
	"roundhouse/test/ports"
)

// program is `roundhouse picker` in a process of its own.
type program struct {
	cmd  *exec.Cmd
	at   string
	text bytes.Buffer
}

// TestProgram has a picker end while answers go through it: told to, it leaves and
// serves on until they have come whole; killed, it takes none with it that it does not
// watch.
func TestProgram(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "roundhouse")
	if out, err := exec.Command("go", "build", "-o", binary, "roundhouse/cmd/roundhouse").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w := sim.New(sim.Options{Pace: time.Millisecond})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	run := func(name string, flags ...string) *program {
		file := filepath.Join(t.TempDir(), "roundhouse.hcl")
		text := fmt.Sprintf("door {\n  listen = %q\n}\nadmin {\n  listen = %q\n}\npool \"p\" {\n  driver = \"static\"\n  worker \"1\" {\n    url = %q\n  }\n}\n", ports.Address(t), ports.Address(t), w.URL)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := &program{at: ports.Address(t)}
		p.cmd = exec.Command(binary, append([]string{"picker", "-c", file, "--listen", "p=" + p.at}, flags...)...)
		p.cmd.Stdout, p.cmd.Stderr = &p.text, &p.text
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			p.cmd.Process.Kill()
			p.cmd.Wait()
			if t.Failed() {
				t.Logf("the picker %s says:\n%s", name, p.text.String())
			}
		})
		until(t, "the picker is ready", func() bool { return p.health(t) })
		return p
	}
	watched, unwatched := run("that watches", "--leave", "1s"), run("that does not", "--unwatched")
	r := &rig{T: t}
	r.at = start(t, map[string]*gateway{"watched": {picker: watched.at, tls: true}, "unwatched": {picker: unwatched.at}})
	ask := func(gateway string) chan answer {
		got, was := make(chan answer, 1), w.Served.Load()
		go func() { got <- r.ask(gateway, "/v1/chat/completions", chat(3000, true, "x")) }()
		until(t, "it is at the worker", func() bool { return w.Served.Load() > was })
		return got
	}
	whole := func(got answer) {
		t.Helper()
		if got.err != nil || got.status != 200 || !strings.Contains(got.body, "[DONE]") {
			t.Errorf("got %d %v %.100s", got.status, got.err, got.body)
		}
	}
	killed, first := ask("unwatched"), ask("watched")
	unwatched.cmd.Process.Kill()
	watched.cmd.Process.Signal(syscall.SIGTERM)
	until(t, "it is known to leave", func() bool { return !watched.health(t) })
	second := ask("watched") // before the gateway has noticed
	whole(<-first)
	whole(<-second)
	whole(<-killed)
	if err := watched.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// health reports whether a picker is ready.
func (p *program) health(t *testing.T) bool {
	c, err := grpc.NewClient("passthrough:///"+p.at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	r, err := healthpb.NewHealthClient(c).Check(ctx, &healthpb.HealthCheckRequest{Service: "readiness"})
	return err == nil && r.Status == healthpb.HealthCheckResponse_SERVING
}

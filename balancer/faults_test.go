package balancer_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundhouse/balancer/control"
	"roundhouse/balancer/sim"
	"roundhouse/configs"
	"roundhouse/test/selfsigned"
)

// trusts has new connections of the rig's client trust whom pool does.
func (r *rig) trusts(pool *x509.CertPool) {
	r.client.CloseIdleConnections()
	r.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	r.t.Cleanup(r.client.CloseIdleConnections)
}

// fault is what the door says that it could not take up, in its state and its
// metrics.
func (r *rig) fault(what string) string {
	r.t.Helper()
	text := r.inState(what)
	for {
		on := "1"
		if text == "" {
			on = "0"
		}
		metrics := r.metrics()
		after := r.inState(what)
		if after != text { // it began or ended between the two
			text = after
			continue
		}
		if line := fmt.Sprintf("roundhouse_door_fault{what=%q} %s\n", what, on); !strings.Contains(metrics, line) {
			r.t.Errorf("metrics do not say %s", line)
		}
		return text
	}
}

// inState returns the fault's words in the door's state, or "".
func (r *rig) inState(what string) string {
	for _, f := range r.door.State().Faults {
		if f.What == what {
			return f.Error
		}
	}
	return ""
}

// take has the door take another set, in which the first worker drains or not.
func (r *rig) take(drain bool, change func(*control.WorkerSet)) error {
	r.set.Version++
	set := r.set
	set.Pools = []control.Pool{set.Pools[0]}
	set.Pools[0].Workers = append([]control.Worker(nil), set.Pools[0].Workers...)
	if drain {
		set.Pools[0].Workers[0].State = "draining"
	}
	change(&set)
	_, err := r.door.Apply(set)
	return err
}

// TestCertificateRenewed replaces the certificate's files: by others, which new
// connections are shown, and by what is none, which changes nothing.
func TestCertificateRenewed(t *testing.T) {
	dir := t.TempDir()
	write := func() *selfsigned.Certificate {
		c, err := selfsigned.Write(dir)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := write()
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Words: 3})}, func(s *control.WorkerSet) { s.Door.TLS = &configs.TLS{Cert: first.Cert, Key: first.Key} })
	r.url = strings.Replace(r.url, "http:", "https:", 1)
	served := func(when string) {
		t.Helper()
		if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != 200 {
			t.Fatalf("%s: %d %s", when, resp.StatusCode, got)
		}
	}
	r.trusts(first.Pool)
	served("with the first")
	if err := os.WriteFile(first.Key, []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.door.LookAtFiles()
	r.trusts(first.Pool)
	served("with a key that is none")
	if got := r.fault("certificate"); !strings.Contains(got, "door.tls") {
		t.Errorf("the fault is %q", got)
	}
	second := write()
	r.door.LookAtFiles()
	r.trusts(second.Pool)
	served("with the second")
	if got := r.fault("certificate"); got != "" {
		t.Errorf("there is still the fault %q", got)
	}
}

// TestOldOneStays has the door take sets whose certificate or plugins cannot be had:
// it serves with the old ones, hears of its workers all the same, and says so. What
// an operator asks of a door that runs alone is refused instead.
func TestOldOneStays(t *testing.T) {
	good, pool := certificate(t)
	bad := &configs.TLS{Cert: filepath.Join(t.TempDir(), "absent.pem"), Key: good.Key}
	filter := everything(t)
	changed := filter
	changed.SHA256 = strings.Repeat("0", 64)
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Words: 3}), sim.New(sim.Options{Words: 3})}, func(s *control.WorkerSet) {
		s.Door.TLS, s.Plugins = good, []configs.Plugin{filter}
		s.Routes = []configs.Route{{Name: "other", Targets: []configs.Target{{Model: "sim", Weight: 1}}}} // whither the filter sends all
	})
	r.url = strings.Replace(r.url, "http:", "https:", 1)
	r.trusts(pool)
	r.door.PluginWithin(100 * time.Millisecond)
	for _, drain := range []bool{true, false} {
		if err := r.take(drain, func(s *control.WorkerSet) { s.Door.TLS, s.Plugins = bad, []configs.Plugin{changed} }); err != nil {
			t.Fatalf("the set is refused: %v", err)
		}
		r.trusts(pool)
		if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != 200 || resp.Header.Get("X-Checked") != "200" {
			t.Errorf("got %d %s", resp.StatusCode, got)
		}
		if c, p := r.fault("certificate"), r.fault("plugins"); !strings.Contains(c, "absent.pem") || !strings.Contains(p, "everything") {
			t.Errorf("the faults are %q and %q", c, p)
		}
		if s := r.door.State().Workers[0].State; (s == "drained" || s == "draining") != drain {
			t.Errorf("the first worker is %s", s)
		}
	}
	if err := r.take(false, func(*control.WorkerSet) {}); err != nil || len(r.door.State().Faults) > 0 {
		t.Errorf("%v; faults %v", err, r.door.State().Faults)
	}
	if err := r.take(false, func(s *control.WorkerSet) { s.Pools[0].Workers[0].URL = "no address" }); err == nil || r.fault("worker_set") == "" {
		t.Errorf("a set that is none: %v; fault %q", err, r.fault("worker_set"))
	}
}

// TestReloadRefusesWhole has a door that runs alone reload a certificate that is not
// there: it says so and keeps all that it had.
func TestReloadRefusesWhole(t *testing.T) {
	r := newRig(t, []*sim.Worker{sim.New(sim.Options{Words: 3})}, func(s *control.WorkerSet) { s.Epoch = 0 })
	err := r.door.Change(func(s *control.WorkerSet) error {
		s.Door.TLS = &configs.TLS{Cert: "absent.pem", Key: "absent.pem"}
		s.Pools = nil
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "absent.pem") {
		t.Errorf("got %v", err)
	}
	if resp, got := r.post("/v1/chat/completions", okBody); resp.StatusCode != 200 {
		t.Errorf("got %d %s", resp.StatusCode, got)
	}
}

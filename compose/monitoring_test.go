//go:build docker

package compose

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"roundhouse/test/ports"
)

// prometheusImage packs this machine's Prometheus as the published image has it: the
// program as the entry point, nobody as the user, a folder of its own for the data.
func prometheusImage(t *testing.T, name string) {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is missing (Debian: prometheus)")
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	put := func(h tar.Header, text []byte) {
		h.Size = int64(len(text))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	put(tar.Header{Name: "prometheus/", Typeflag: tar.TypeDir, Mode: 0o755, Uid: 65534, Gid: 65534}, nil)
	put(tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte("nobody:x:65534:65534::/:/\n"))
	files := map[string]string{"bin/prometheus": program}
	for word := range strings.FieldsSeq(run(t, ".", "ldd", program)) {
		if filepath.IsAbs(word) {
			files[strings.TrimPrefix(word, "/")] = word
		}
	}
	for to, from := range files {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		put(tar.Header{Name: to, Mode: 0o755}, text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	load := exec.Command("docker", "import", "--change", `ENTRYPOINT ["/bin/prometheus"]`, "--change", "USER nobody", "--change", "WORKDIR /prometheus", "-", name)
	load.Stdin = &layer
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", name).Run() })
}

// TestComposeMonitoring: Prometheus as compose.monitoring.yaml runs it, beside the
// supervisor whose admin API is closed to everybody else, scrapes door and supervisor
// and has every rule in force. Grafana is not run: no package has it.
func TestComposeMonitoring(t *testing.T) {
	c := compositionFor(t, "compose.monitoring.yaml")
	packImages(t)
	const image = "rhtest/prometheus:stand-in"
	prometheusImage(t, image)
	prom := ports.Address(t)
	c.env = append(c.env, "PROMETHEUS_IMAGE="+image, "PROMETHEUS_LISTEN="+prom, "GRAFANA_LISTEN="+ports.Address(t))
	c.services = []string{"prometheus"}
	c.up("2/2")
	waitFor(t, func() error {
		res, err := http.Get("http://" + prom + "/-/ready")
		if err != nil {
			return err
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("Prometheus says %s", res.Status)
		}
		return nil
	})
	if err := requests(c.door); err != nil {
		t.Error(err)
	}
	for _, expr := range []string{
		`up{job="roundhouse-door"} == 1`, `up{job="roundhouse-supervisor"} == 1`, `sum(roundhouse_worker_state{state="ready"}) == 2`,
		`roundhouse_worker_starts_total`, `vllm:request_success_total > 0`, `roundhouse_config_last_reload_successful == 1`,
	} {
		waitFor(t, func() error {
			if ask(t, "http://"+prom, expr) == 0 {
				return fmt.Errorf("nothing is known of %s", expr)
			}
			return nil
		})
	}
	res, err := http.Get("http://" + prom + "/api/v1/rules?type=alert")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	force, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules(t) {
		if !bytes.Contains(force, []byte(`"name":"`+r.Alert+`"`)) {
			t.Errorf("the alert %s is not in force", r.Alert)
		}
	}
	c.down()
}

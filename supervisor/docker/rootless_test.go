package docker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// `roundhouse doctor` says what a rootless engine lacks, and a pool that is to move
// to its host's network goes back and says why.
func TestDoctorOfRootless(t *testing.T) {
	if !*rootless {
		t.Skip("for -rootless alone")
	}
	h := houseFor(t, "unreached", poolOf("unreached", testImage, ""))
	h.until("1 ready 1 ready")
	h.reload(strings.Replace(poolOf("unreached", testImage, ""), `network_mode = ""`, `network_mode = "host"`, 1))
	h.rolled("leave network_mode out")
	doctor := exec.Command(filepath.Join(built.dir, "roundhouse"), "doctor", "-c", h.config)
	doctor.Env = append(os.Environ(), "DOCKER_HOST="+h.lab.host.URL)
	out, err := doctor.CombinedOutput()
	if err == nil {
		t.Error("doctor finds nothing wrong")
	}
	for _, want := range []string{"an engine answers at " + h.lab.host.URL, "pool unreached: network_mode", "leave network_mode out"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("doctor does not say %q:\n%s", want, out)
		}
	}
	_, d := driverFor(t)
	if err := d.agree(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lacks := !d.can().Confines || !d.can().Measures; lacks != strings.Contains(string(out), "has not all control groups") {
		t.Errorf("the engine: %+v; doctor:\n%s", d.can(), out)
	}
}

package docker

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// `roundhouse doctor` says what an engine lacks. Where it is rootless, a pool that is to
// move to its host's network goes back and says why.
func TestDoctor(t *testing.T) {
	h := houseFor(t, "looked", poolOf("looked", testImage, ""))
	h.until("1 ready 1 ready")
	want := []string{"an engine answers at " + h.lab.host.URL}
	if *rootless {
		h.reload(strings.Replace(poolOf("looked", testImage, ""), `network_mode = ""`, `network_mode = "host"`, 1))
		h.rolled("leave network_mode out")
		want = append(want, "pool looked: network_mode", "leave network_mode out")
	}
	doctor := exec.Command(roundhouse(t), "doctor", "-c", h.config)
	if doctor.Env = os.Environ(); h.lab.host.URL != "" {
		doctor.Env = append(doctor.Env, "DOCKER_HOST="+h.lab.host.URL)
	}
	out, _ := doctor.CombinedOutput() // its status is of much else on this machine as well
	for _, want := range want {
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

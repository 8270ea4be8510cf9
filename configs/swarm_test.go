package configs

import (
	"strings"
	"testing"
)

// What a Swarm service cannot have is refused, with the field and what to do.
func TestSwarmRefuses(t *testing.T) {
	f := func(attribute string, want ...string) {
		t.Helper()
		refuse(t, "pool \"a\" {\n  driver = \"swarm\"\n  image = \"a:1\"\n  "+attribute+"\n}\n", want...)
	}
	f(`network_mode = "host"`, "test.hcl:4:", "network_mode: a Swarm service has none", "overlay network")
	f(`ipc = "host"`, "ipc: a Swarm service has none", "shm_size")
	f(`devices = "cpu"`, "devices: a Swarm service has none", "generic_resources")
	f(`gpus_per_worker = 2`, "gpus_per_worker: a Swarm service has none", "generic_resources")
	f("worker \"w\" {\n    gpus = [\"0000:18:00.0\"]\n  }", "a Swarm service cannot be given a device", "generic_resources")
	f("worker \"w\" {\n    takeover = \"old\"\n  }", "takeover is for the docker driver")
	f(`constraints = ["gpu"]`, `constraint "gpu"`, "node.labels.gpu == b60")
	f(`constraints = ["node.label.gpu == b60"]`, `constraint "node.label.gpu == b60"`)
	f(`generic_resources = { "NVIDIA-GPU" = 0 }`, "NVIDIA-GPU", "at least 1")
	f(`volumes = ["./models:/models"]`, `"./models:/models"`, "neither a folder from the root nor a volume's name")
	refuse(t, "pool \"a\" {\n  driver = \"docker\"\n  image = \"a:1\"\n  constraints = [\"node.role == worker\"]\n}\n", "constraints is for the swarm driver")
}

func TestParseVolume(t *testing.T) {
	f := func(text string, want Volume) {
		t.Helper()
		if v, err := ParseVolume(text); err != nil || v != want {
			t.Errorf("%s: got %+v %v", text, v, err)
		}
	}
	f("/srv/models:/models", Volume{Source: "/srv/models", Target: "/models"})
	f("/srv/models/:/models:ro", Volume{Source: "/srv/models/", Target: "/models", ReadOnly: true})
	f("models:/models:rw", Volume{Source: "models", Target: "/models"})
	f("/srv:/srv:ro,rslave", Volume{Source: "/srv", Target: "/srv", ReadOnly: true, Propagation: "rslave"})
	f("/models", Volume{Target: "/models"})
	for _, text := range []string{"", "models", "a:b", "a:/", "a:/b:z", "a:/b:rslave", "a:/b:ro:ro", "~/a:/b"} {
		if v, err := ParseVolume(text); err == nil || !strings.Contains(err.Error(), "write ") {
			t.Errorf("%q: got %+v %v", text, v, err)
		}
	}
}

package configs

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// A worker has the pool's settings and its own, which override those of their name;
// the pool's are as they were for the others.
func TestOwn(t *testing.T) {
	const file = `
pool "vllm" {
  driver      = "docker"
  image       = "a:1"
  environment = { A = "pool", B = "pool" }
  volumes     = ["/models:/models:ro", "/cache:/cache/"]
  engine {
    args        = ["--max-num-seqs", "16"]
    environment = { C = "pool" }
  }
  worker "one" {}
  worker "two" {
    environment = { A = "own", C = "own", PORT_OF = 7 }
    args        = ["--max-num-seqs", "8"]
    volumes     = ["/cache/two:/cache"]
  }
}
pool "shell" {
  command = ["vllm", "serve", "--port", "$PORT"]
  environment = { A = "pool" }
  devices = "cpu"
  worker "x" {
    environment = { A = "own" }
    args        = ["--seed", "1"]
  }
}`
	cfg := parse(t, file)
	vllm, command := cfg.Pools[0], cfg.Pools[1]
	e, c := vllm.Of(vllm.Workers[0])
	if len(e.Args) != 2 || e.Environment["C"] != "pool" || c.Environment["A"] != "pool" || len(c.Volumes) != 2 {
		t.Errorf("one: %+v %+v", e, c)
	}
	e, c = vllm.Of(vllm.Workers[1])
	if !slices.Equal(e.Args, []string{"--max-num-seqs", "16", "--max-num-seqs", "8"}) || !maps.Equal(e.Environment, map[string]string{"A": "own", "C": "own", "PORT_OF": "7"}) {
		t.Errorf("two's engine: %+v", e)
	}
	if !slices.Equal(c.Volumes, []string{"/models:/models:ro", "/cache/two:/cache"}) {
		t.Errorf("two's volumes: %q", c.Volumes)
	}
	if again, _ := vllm.Of(vllm.Workers[0]); len(again.Args) != 2 || again.Environment["C"] != "pool" {
		t.Errorf("one has what is two's: %+v", again)
	}
	e, c = command.Of(command.Workers[0])
	if !slices.Equal(c.Command, []string{"vllm", "serve", "--port", "$PORT", "--seed", "1"}) || c.Environment["A"] != "own" || len(e.Args) != 0 {
		t.Errorf("a command: %+v %+v", e, c)
	}
	// A worker without settings of its own is known by the same hash as before.
	text, err := json.Marshal(vllm.Workers[0])
	if err != nil || strings.Contains(string(text), "environment") || strings.Contains(string(text), "args") {
		t.Errorf("%s %v", text, err)
	}
}

// What a worker cannot have of its own is refused.
func TestOwnRefused(t *testing.T) {
	f := func(pool string, want ...string) {
		t.Helper()
		refuse(t, "pool \"a\" {\n"+pool+"\n}\n", want...)
	}
	f("driver = \"static\"\nworker \"x\" {\n  url = \"http://127.0.0.1:1\"\n  args = [\"--x\"]\n}", "test.hcl:5:", "args: a static pool's workers are run by somebody else")
	f("driver = \"static\"\nworker \"x\" {\n  url = \"http://127.0.0.1:1\"\n  environment = { A = \"b\" }\n}", "environment: a static pool's")
	f("worker \"x\" { volumes = [\"/a:/b\"] }", "volumes is for the docker and swarm drivers")
	f("driver = \"swarm\"\nimage = \"a:1\"\nworker \"x\" { volumes = [\"./a:/b\"] }", "neither a folder from the root")
	f("driver = \"docker\"\nimage = \"a:1\"\nentrypoint = [\"/bin/bash\", \"-lc\"]\ncommand = [\"vllm serve x\"]\nworker \"x\" { args = [\"--y\"] }", "a shell's -c", "environment")
	f("command = \"sh -c serve\"\nworker \"x\" { args = [\"--y\"] }", "a shell's -c")
}

// What would open a container to its host is refused, in words; so is what its driver
// has no such thing for.
func TestConfinement(t *testing.T) {
	f := func(attribute string, want ...string) {
		t.Helper()
		refuse(t, "pool \"a\" {\n  driver = \"docker\"\n  image = \"a:1\"\n  "+attribute+"\n}\n", append(want, "test.hcl:4:")...)
	}
	f(`cap_add = ["SYS_ADMIN"]`, "SYS_PTRACE, IPC_LOCK, SYS_NICE")
	f(`cap_add = ["ALL"]`, `"ALL" is none`)
	f(`cap_add = ["IPC_LOCK", "CAP_IPC_LOCK"]`, "there twice")
	f(`security_opt = ["seccomp=unconfined"]`, "seccomp profile holds", "SYS_PTRACE")
	f(`security_opt = ["apparmor=unconfined"]`, "never unconfined")
	f(`security_opt = ["label=disable"]`, "security_opt")
	for _, node := range []string{"/dev/sda", "/dev/dri", "/dev/dri/../sda", "/dev/kmsg", "/dev/nvidia0/../sda", "/dev/kfd:/dev/x", "/dev/fuse", "/dev/infiniband/rdma_cm", "/dev/nvidia"} {
		f(`devices_extra = ["`+node+`"]`, "no accelerator's node")
	}
	f(`pids_limit = 0`, "from 1 to 4194304")
	f(`memory = "1MiB"`, "memory is 1MiB; it is 6MiB or more")
	f("memory = \"1GiB\"\n  shm_size = \"2GiB\"", "counts as memory")
	f(`extra_hosts = ["a b:10.0.0.1"]`, "name:address")
	f(`extra_hosts = ["cache:10.0.0"]`, "name:address")
	swarm := func(attribute string, want ...string) {
		t.Helper()
		refuse(t, "pool \"a\" {\n  driver = \"swarm\"\n  image = \"a:1\"\n  "+attribute+"\n}\n", want...)
	}
	swarm(`security_opt = ["no-new-privileges"]`, "security_opt: a Swarm service has none", "daemon.json")
	swarm(`devices_extra = ["/dev/kfd"]`, "devices_extra: a Swarm service has none")
	swarm(`cap_add = ["SYS_ADMIN"]`, "none of those")
	refuse(t, "pool \"a\" {\n  memory = \"1GiB\"\n}\n", "memory is for the docker and swarm drivers")
	for _, node := range []string{"/dev/dri/renderD129", "/dev/dri/card1", "/dev/dri/by-path/pci-0000:18:00.0-render", "/dev/infiniband/uverbs12", "/dev/kfd", "/dev/accel/accel0", "/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps/nvidia-cap1"} {
		if err := CheckDevice(node); err != nil {
			t.Error(err)
		}
	}
	for _, drivers := range []string{"docker", "swarm"} {
		cfg := parse(t, "pool \"a\" {\n  driver = \""+drivers+"\"\n  image = \"a:1\"\n  cap_add = [\"cap_sys_nice\"]\n  pids_limit = 100\n  memory = \"1GiB\"\n  extra_hosts = [\"host.docker.internal:host-gateway\", \"six:fd00::1\"]\n}\n")
		if c := cfg.Pools[0].Container; !slices.Equal(c.CapAdd, []string{"SYS_NICE"}) || c.Memory != 1<<30 || c.PidsLimit != 100 {
			t.Errorf("%+v", c)
		}
	}
}

// What a worker has of its own is shown as the pool's is: without its secrets.
func TestOwnRedacted(t *testing.T) {
	cfg := parse(t, "pool \"a\" {\n  worker \"x\" {\n    environment = { HF_TOKEN = \"hf_abc\", A = \"b\" }\n    args = [\"--api-key\", \"sk-1\"]\n  }\n}")
	text, err := json.Marshal(cfg.Redacted())
	if err != nil || strings.Contains(string(text), "hf_abc") || strings.Contains(string(text), "sk-1") || !strings.Contains(string(text), `"A":"b"`) {
		t.Errorf("%s %v", text, err)
	}
	if cfg.Pools[0].Workers[0].Environment["HF_TOKEN"] != "hf_abc" {
		t.Error("the configuration itself was changed")
	}
}

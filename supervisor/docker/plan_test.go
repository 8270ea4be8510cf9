package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"roundhouse/configs"
	"roundhouse/supervisor/driver"
)

var update = flag.Bool("update", false, "write the golden files anew")

var group = regexp.MustCompile(`("GroupAdd": \[\s*")[0-9]+`)

// TestPlan: what a container is made of, to the letter, for each kind of device and
// network. Nothing is asked of an engine.
func TestPlan(t *testing.T) {
	nodes := filepath.Join(t.TempDir(), "dri")
	if err := os.MkdirAll(filepath.Join(nodes, "by-path"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"card0", "renderD128", "card1", "renderD129"} {
		if err := os.WriteFile(filepath.Join(nodes, name), nil, 0o660); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"pci-0000:18:00.0-card": "card0", "pci-0000:18:00.0-render": "renderD128", "pci-0000:4b:00.0-card": "card1", "pci-0000:4b:00.0-render": "renderD129",
	} {
		if err := os.Symlink("../"+to, filepath.Join(nodes, "by-path", link)); err != nil {
			t.Fatal(err)
		}
	}
	llmScaler := driver.Spec{
		Pool: "model", Name: "vllm_1", Generation: 3, Hash: "abc", Port: 8008, Grace: time.Minute,
		Engine: configs.Engine{Model: "/llm/models/DeepSeek-R1-Distill-Qwen-7B", ServedModelName: []string{"model"}, MaxModelLen: 32768, Args: []string{"--dtype=float16", "-tp=1"}},
		Container: configs.Container{
			Image: "intel/llm-scaler-vllm:latest", NetworkMode: "host", ShmSize: 32 << 30, Volumes: []string{"/home/intel/LLM/:/llm/models/"},
			Environment: map[string]string{"VLLM_WORKER_MULTIPROC_METHOD": "spawn"}, Ulimits: map[string]int64{"memlock": -1}, Init: true,
		},
		Place: driver.Place{
			GPUs: []driver.GPU{{ID: "0000:18:00.0", Vendor: "intel", Render: filepath.Join(nodes, "renderD128"), Card: filepath.Join(nodes, "card0")}},
			NUMA: []int{0}, CPUs: "0-17",
		},
	}
	nvidia := driver.Spec{
		Pool: "chat", Name: "2", Generation: 1, Hash: "def",
		Container: configs.Container{Image: "vllm/vllm-openai:v0.21.0", Networks: []string{"roundhouse"}, IPC: "private", Command: []string{"--model", "x"}},
		Place:     driver.Place{GPUs: []driver.GPU{{ID: "GPU-0a", Vendor: "nvidia"}, {ID: "GPU-0b", Vendor: "nvidia"}}, NUMA: []int{0, 1}, CPUs: "0-3,8-11"},
	}
	wide := driver.Spec{
		Pool: "wide", Name: "1", Generation: 1, Hash: "abd",
		Container: configs.Container{
			Image: "vllm/vllm-openai:v0.21.0", Command: []string{"-tp=2"}, IPC: "host", Ulimits: map[string]int64{"memlock": -1, "nofile": 1 << 20},
			CapAdd: []string{"SYS_PTRACE", "IPC_LOCK"}, SecurityOpt: []string{"no-new-privileges"}, DevicesExtra: []string{"/dev/infiniband/uverbs0"},
			PidsLimit: 4096, Memory: 64 << 30, ExtraHosts: []string{"cache.example:10.0.0.7"},
		},
	}
	published := driver.Spec{Pool: "chat", Name: "1", Generation: 1, Port: 8010, Container: configs.Container{Image: "roundhouse/worker-cpu:latest"}}
	for name, c := range map[string]struct {
		spec   driver.Spec
		inside bool
	}{"llm-scaler": {llmScaler, false}, "nvidia": {nvidia, true}, "published": {published, false}, "wide": {wide, false}} {
		d := &Driver{instance: "here", inside: c.inside, nodes: nodes}
		p, err := d.plan(context.Background(), c.spec)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(map[string]any{"Config": p.config, "HostConfig": p.host, "NetworkingConfig": p.network}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		text = group.ReplaceAll(text, []byte("${1}GROUP OF THE NODE"))
		text = append(bytes.ReplaceAll(text, []byte(nodes), []byte("/dev/dri")), '\n')
		path := filepath.Join("testdata", "plan", name+".json")
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, text) {
			t.Errorf("%s is\n%s\n(go test ./supervisor/docker -run TestPlan -update writes it; %v)", path, text, err)
		}
		if strings.Contains(string(text), `"Privileged": true`) || strings.Contains(string(text), "renderD129") {
			t.Errorf("%s: more than its own device", name)
		}
	}
}

// A rootless engine without control groups is asked for nothing that it would only seem
// to do, and the host's network, which is not the machine's, is refused.
func TestPlanOfRootless(t *testing.T) {
	d := &Driver{instance: "here", nodes: t.TempDir()}
	d.powers.Store(&Powers{Rootless: true})
	spec := specFor("1", 1)
	spec.Place.CPUs, spec.Place.NUMA = "2-3", []int{1}
	spec.Place.GPUs = []driver.GPU{{ID: "0000:18:00.0", Vendor: "intel", Render: "/dev/null"}}
	p, err := d.plan(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if h := p.host; h.CpusetCpus != "" || h.CpusetMems != "" || len(h.GroupAdd) > 0 || len(h.Devices) != 1 {
		t.Errorf("CPUs %q, nodes %q, groups %q, devices %v", h.CpusetCpus, h.CpusetMems, h.GroupAdd, h.Devices)
	}
	spec.Container.Memory = 1 << 30
	if _, err := d.plan(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "no control groups") {
		t.Errorf("a limit that would not hold: %v", err)
	}
	spec.Container.Memory = 0
	spec.Container.NetworkMode = "host"
	if _, err := d.plan(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "leave network_mode out") {
		t.Errorf("the host's network: %v", err)
	}
}

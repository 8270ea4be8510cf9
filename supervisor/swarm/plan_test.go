package swarm

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"roundhouse/configs"
	"roundhouse/supervisor/driver"
)

var update = flag.Bool("update", false, "write the golden files anew")

// What a Spec becomes, whole.
func TestPlan(t *testing.T) {
	fleet := driver.Spec{
		Pool: "chat", Name: "1", Generation: 3, Hash: "abc", Grace: time.Minute,
		Engine: configs.Engine{Model: "/models/Qwen3-8B", ServedModelName: []string{"model"}, MaxModelLen: 32768},
		Container: configs.Container{
			Image: "vllm/vllm-openai:v0.21.0", ShmSize: 8 << 30, Volumes: []string{"/srv/models:/models:ro", "cache:/root/.cache"}, Init: true, User: "1000",
			Environment: map[string]string{"VLLM_LOGGING_LEVEL": "INFO"}, Ulimits: map[string]int64{"memlock": -1}, Labels: map[string]string{"example.team": "a"},
			CapAdd: []string{"IPC_LOCK"}, PidsLimit: 4096, Memory: 64 << 30, ExtraHosts: []string{"cache.example:10.0.0.7"},
			Constraints: []string{"node.labels.gpu == h100"}, GenericResources: map[string]int64{"NVIDIA-GPU": 2},
		},
	}
	overlay := driver.Spec{
		Pool: "chat", Name: "vllm_1", Generation: 1, Hash: "def", Grace: time.Second, Port: 8008,
		Container: configs.Container{Image: "a:1", Networks: []string{"roundhouse", "storage"}, Entrypoint: []string{"bash", "-lc"}, Command: []string{"serve"}},
	}
	for name, c := range map[string]struct {
		spec   driver.Spec
		inside bool
	}{"published": {fleet, false}, "overlay": {overlay, true}} {
		d := &Driver{instance: "here", inside: c.inside}
		p, err := d.plan(c.spec, "a@sha256:digest")
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, '\n')
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
			t.Errorf("%s is\n%s\n(go test ./supervisor/swarm -run TestPlan -update writes it; %v)", path, text, err)
		}
	}
}

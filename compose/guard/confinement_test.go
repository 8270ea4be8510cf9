package guard

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
)

// What a pool lets through to its containers passes, and nothing beside it; what
// confines them can neither be loosened nor left out.
func TestConfinement(t *testing.T) {
	g := guardOf(t, "/nowhere")
	create := func(worker string, change func(h *container.HostConfig)) (string, error) {
		t.Helper()
		pids := int64(4096)
		h := &container.HostConfig{
			CapAdd: []string{"SYS_PTRACE", "CAP_IPC_LOCK"}, SecurityOpt: []string{"apparmor=docker-default", "no-new-privileges"}, ExtraHosts: []string{"cache.example:10.0.0.7"},
			Resources: container.Resources{PidsLimit: &pids, Memory: 64 << 30, MemorySwap: 64 << 30, Devices: []container.DeviceMapping{
				{PathOnHost: "/dev/infiniband/uverbs0", PathInContainer: "/dev/infiniband/uverbs0", CgroupPermissions: "rw"},
				{PathOnHost: "/dev/kfd", PathInContainer: "/dev/kfd", CgroupPermissions: "rw"},
			}},
		}
		change(h)
		text, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		return made(t, g, worker, fmt.Sprintf(`{"Image":"vllm/vllm-openai:v0.21.0","Labels":{"roundhouse.instance":"here","roundhouse.pool":"wide","roundhouse.worker":"wide/%s"},"HostConfig":%s}`, worker, text))
	}
	out, err := create("own", func(*container.HostConfig) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"CapAdd":["CAP_SYS_PTRACE","CAP_IPC_LOCK"]`, `"no-new-privileges"`, `"PidsLimit":4096`, `"Memory":68719476736`, `"/dev/infiniband/uverbs0"`, `"cache.example:10.0.0.7"`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s did not pass: %s", want, out)
		}
	}
	refused := func(want string, change func(h *container.HostConfig)) {
		t.Helper()
		if out, err := create("own", change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v %s; want %q", err, out, want)
		}
	}
	for _, name := range []string{"SYS_ADMIN", "ALL", "CAP_SYS_MODULE", "sys_admin", "CAP_CAP_IPC_LOCK", "", "DAC_READ_SEARCH"} {
		refused("none of those that an engine uses", func(h *container.HostConfig) { h.CapAdd = []string{name} })
	}
	refused("SYS_NICE is not the configuration's", func(h *container.HostConfig) { h.CapAdd = []string{"SYS_NICE"} })
	refused("CapDrop may not be set", func(h *container.HostConfig) { h.CapDrop = []string{"KILL"} })
	for _, option := range []string{"seccomp=unconfined", "apparmor=unconfined", "apparmor=Unconfined", "apparmor:unconfined", "label=disable", "systempaths=unconfined", `seccomp={"defaultAction":"SCMP_ACT_ALLOW"}`, "no-new-privileges=false", ""} {
		refused("security_opt", func(h *container.HostConfig) { h.SecurityOpt = append(h.SecurityOpt, option) })
	}
	refused("are not the configuration's", func(h *container.HostConfig) { h.SecurityOpt = nil })
	refused("are not the configuration's", func(h *container.HostConfig) { h.SecurityOpt = []string{"no-new-privileges", "apparmor=other"} })
	for _, pids := range []int64{-1, 0, 4097, 1} {
		refused("not the configuration's pids_limit", func(h *container.HostConfig) { h.PidsLimit = &pids })
	}
	refused("not the configuration's pids_limit", func(h *container.HostConfig) { h.PidsLimit = nil })
	refused("not the configuration's memory", func(h *container.HostConfig) { h.Memory, h.MemorySwap = 0, 0 })
	refused("not the configuration's memory", func(h *container.HostConfig) { h.MemorySwap = -1 })
	refused("not the configuration's memory", func(h *container.HostConfig) { h.Memory++ })
	refused("MemoryReservation may not be set", func(h *container.HostConfig) { h.MemoryReservation = 1 })
	refused("ExtraHosts", func(h *container.HostConfig) { h.ExtraHosts = []string{"cache.example:10.0.0.8"} })
	for _, node := range []string{"/dev/infiniband/uverbs1", "/dev/sda", "/dev/mem", "/dev/infiniband/../sda", "/dev/fuse", "/dev"} {
		refused("Devices", func(h *container.HostConfig) {
			h.Devices = []container.DeviceMapping{{PathOnHost: node, PathInContainer: node, CgroupPermissions: "rw"}}
		})
	}
	refused("not given under its own name", func(h *container.HostConfig) { h.Devices[0].PathInContainer = "/dev/sda" })
	refused(`not "rw"`, func(h *container.HostConfig) { h.Devices[0].CgroupPermissions = "rwm" })
}

// A worker's own variables and volumes are its own: another of the pool has the pool's.
func TestOwnSettings(t *testing.T) {
	g := guardOf(t, "/nowhere")
	const confined = `"SecurityOpt":["no-new-privileges","apparmor=docker-default"],"PidsLimit":4096,"Memory":68719476736,"MemorySwap":68719476736`
	f := func(worker, bind, capabilities, want string) {
		t.Helper()
		_, err := made(t, g, worker, fmt.Sprintf(`{"Image":"vllm/vllm-openai:v0.21.0","Env":["NVIDIA_DRIVER_CAPABILITIES=%s"],"Labels":{"roundhouse.instance":"here","roundhouse.pool":"wide","roundhouse.worker":"wide/%s"},"HostConfig":{"Binds":[%q],%s}}`,
			capabilities, worker, bind, confined))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s %s %s: %v; want %q", worker, bind, capabilities, err, want)
		}
	}
	f("own", "/cache/own:/cache", "all", "")
	f("own", "/models:/models:ro", "all", "")
	f("other", "/cache:/cache", "compute", "")
	f("own", "/cache:/cache", "all", "no volume of wide/own")
	f("other", "/cache/own:/cache", "compute", "no volume of wide/other")
	f("own", "/models:/models:ro", "compute", "not the configuration's")
	f("other", "/models:/models:ro", "all", "not the configuration's")
}

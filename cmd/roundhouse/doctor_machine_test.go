package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"roundhouse/configs"
	"roundhouse/supervisor/docker"
	"roundhouse/supervisor/moby"
	"roundhouse/worker/device"
)

// TestDoctorMachine: each thing that can be wrong with a machine is found, named, and told
// with what to do; on one that is well nothing is wrong.
func TestDoctorMachine(t *testing.T) {
	machine := func(gpus ...device.GPU) func(string, string) (device.Machine, error) {
		return func(string, string) (device.Machine, error) {
			return device.Machine{
				Nodes: []device.Node{{ID: 0, CPUs: []int{0, 1, 2, 3}, MemoryBytes: 1 << 30}},
				Cores: []device.Core{{CPUs: []int{0}}, {CPUs: []int{1}}, {CPUs: []int{2}}, {CPUs: []int{3}}}, GPUs: gpus,
			}, nil
		}
	}
	well := func() (facts, *configs.Config) {
		return facts{
				files: 1 << 20, memory: 64 << 30, synced: true, now: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC),
				listen: func(string) error { return nil }, access: func(string, uint32) error { return nil }, dial: func(string, string) error { return nil },
				engine:  func(moby.Host) (docker.Powers, error) { return docker.Powers{Confines: true, Measures: true}, nil },
				machine: machine(),
			}, &configs.Config{
				StateDir: "/", Door: configs.Door{Listen: ":8000", Memory: 4 << 30, Limits: configs.Limits{Connections: 20000}}, Admin: configs.Admin{Listen: "127.0.0.1:8001"},
				Pools: []configs.Pool{{Name: "chat", Driver: "process", Devices: "cpu", Workers: []configs.Worker{{Name: "1"}, {Name: "2"}}}},
			}
	}
	f := func(name string, change func(*facts, *configs.Config), want ...string) {
		t.Helper()
		facts, cfg := well()
		change(&facts, cfg)
		d := &doctor{console: &console{env: func(string) (string, bool) { return "", false }}, cfg: cfg, root: t.TempDir(), facts: facts, sysfs: t.TempDir(), proc: t.TempDir()}
		d.plan()
		d.own()
		d.machine()
		wrong := 0
		all := ""
		for _, x := range d.findings {
			all += fmt.Sprintf("%s %s: %s → %s\n", x.State, x.Check, x.Text, x.Action)
			if x.State == "warn" || x.State == "fail" {
				wrong++
				if x.Action == "" {
					t.Errorf("%s: no remedy: %s: %s", name, x.Check, x.Text)
				}
			}
		}
		for _, w := range want {
			if !strings.Contains(all, w) {
				t.Errorf("%s: no finding says %q:\n%s", name, w, all)
			}
		}
		if should := len(want) > 0 && !strings.HasPrefix(want[0], "ok"); (wrong > 0) != should {
			t.Errorf("%s: %d things are wrong:\n%s", name, wrong, all)
		}
	}
	f("well", func(*facts, *configs.Config) {}, "ok plan: chat/1: CPUs 1", "ok plan: chat/2: CPUs 2-3", "ok limits", "ok clock", "ok ports: door.listen :8000 is free")
	f("few files", func(f *facts, _ *configs.Config) { f.files = 1024 }, "warn limits: 1024 open files are allowed", "LimitNOFILE")
	f("little memory", func(f *facts, _ *configs.Config) { f.memory = 4 << 30 }, "warn memory: the door may hold 4GiB")
	f("an old clock", func(f *facts, _ *configs.Config) { f.now = time.Unix(0, 0) }, "fail clock", "timedatectl")
	f("a clock that nobody keeps", func(f *facts, c *configs.Config) { f.synced, c.Pools[0].Rotation.Schedule = false, "0 3 * * *" }, "warn clock: nothing keeps it right")
	f("without a schedule that is no matter", func(f *facts, _ *configs.Config) { f.synced = false }, "ok clock")
	f("a port that is taken", func(f *facts, _ *configs.Config) {
		f.listen = func(a string) error {
			if a == ":8000" {
				return fmt.Errorf("listen: %w", syscall.EADDRINUSE)
			}
			return nil
		}
	}, "fail ports: door.listen :8000 is taken", "ss -ltnp", "ok ports: admin.listen")
	f("a port for root", func(f *facts, _ *configs.Config) { f.listen = func(string) error { return syscall.EACCES } }, "fail ports: door.listen :8000 is not for this user", "cap_net_bind_service")
	f("an address of another machine", func(f *facts, _ *configs.Config) {
		f.listen = func(string) error { return errors.New("cannot assign requested address") }
	}, "fail ports: admin.listen 127.0.0.1:8001 cannot be had")
	f("a folder that is not ours", func(f *facts, _ *configs.Config) { f.access = func(string, uint32) error { return syscall.EACCES } }, "warn state_dir: this user may not write to /")
	container := func(c *configs.Config) { c.Pools[0].Driver = "docker" }
	f("docker", func(_ *facts, c *configs.Config) { container(c) }, "ok docker: an engine answers at unix:///var/run/docker.sock")
	f("no docker", func(f *facts, c *configs.Config) {
		container(c)
		f.dial = func(string, string) error { return syscall.ENOENT }
	}, "fail docker: no Docker engine answers", "systemctl start docker")
	f("docker for others", func(f *facts, c *configs.Config) {
		container(c)
		f.dial = func(string, string) error { return fmt.Errorf("dial: %w", syscall.EACCES) }
	}, "fail docker: this user may not open", "usermod -aG docker")
	f("a rootless engine", func(f *facts, c *configs.Config) {
		container(c)
		c.Pools[0].Container.NetworkMode = "host"
		c.Pools[0].Devices = "auto"
		c.Pools[0].Workers = nil
		f.engine = func(moby.Host) (docker.Powers, error) { return docker.Powers{Rootless: true}, nil }
	}, "warn docker: the engine at unix:///var/run/docker.sock has not all control groups: its containers are on all CPUs", "tell nothing of their memory", "Delegate=",
		"fail pool chat: network_mode", "leave network_mode out", "warn pool chat: the engine", "setfacl")
	f("an engine behind a guard", func(f *facts, c *configs.Config) {
		container(c)
		f.engine = func(moby.Host) (docker.Powers, error) { return docker.Powers{}, errors.New("403") }
	}, "ok docker: an engine answers", "note docker: the engine at unix:///var/run/docker.sock does not tell")
	f("a GPU without a driver", func(f *facts, _ *configs.Config) {
		f.machine = machine(device.GPU{PCI: "0000:18:00.0", Vendor: "intel"})
	}, "warn gpu 0000:18:00.0: no driver is bound", "modprobe xe")
	f("a GPU claimed twice", func(f *facts, c *configs.Config) {
		f.machine = machine(device.GPU{PCI: "0000:18:00.0", Vendor: "intel", Driver: "xe", Render: "/dev/dri/renderD128"})
		c.Pools[0].Devices = "auto"
		for i := range c.Pools[0].Workers {
			c.Pools[0].Workers[i].GPUs = []string{"0000:18:00.0"}
		}
	}, "fail gpu 0000:18:00.0: it is claimed by chat/1 and chat/2", "name each device in one worker alone")
	f("too few GPUs", func(f *facts, c *configs.Config) {
		f.machine = machine(device.GPU{PCI: "0000:18:00.0", Vendor: "intel", Driver: "xe", Render: "/dev/dri/renderD128"})
		c.Pools[0].Devices = "auto"
	}, "fail worker chat/2: 1 GPUs wanted, 0 free of the 1")
	f("a worker's own settings", func(_ *facts, c *configs.Config) {
		w := &c.Pools[0].Workers[1]
		w.Environment, w.Args, w.Volumes = map[string]string{"HF_TOKEN": "hf_secret", "LEVEL": "debug"}, []string{"--max-num-seqs", "8"}, []string{"/a:/b"}
	}, "ok clock", "note plan: chat/2 has of its own: HF_TOKEN=***, LEVEL=debug, --max-num-seqs 8, volume /a:/b")
	f("containers that have more than others", func(_ *facts, c *configs.Config) {
		container(c)
		c.Pools[0].Container = configs.Container{CapAdd: []string{"IPC_LOCK"}, SecurityOpt: []string{"no-new-privileges"}, PidsLimit: 100, Memory: 1 << 30, DevicesExtra: []string{"/dev/kfd"}}
	}, "note pool chat: its containers have capability IPC_LOCK, no-new-privileges, device /dev/kfd, at most 100 processes, at most 1GiB of memory",
		"fail pool chat: devices_extra", "load the driver that makes it")
	f("a machine that cannot be read", func(f *facts, _ *configs.Config) {
		f.machine = func(string, string) (device.Machine, error) { return device.Machine{}, errors.New("no CPUs") }
	}, "fail plan: no CPUs")
}

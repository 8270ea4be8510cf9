package configs

import (
	"regexp"
	"strings"
)

// notOfSwarm is what a container may have and a service of a Swarm may not, with
// what to do instead: what is set and dropped is worse than an error.
var notOfSwarm = []struct{ name, instead string }{
	{"network_mode", `name an overlay network in networks, or leave both out: its port is published on its node`},
	{"ipc", `shm_size sets how large its own shared memory may grow`},
	{"security_opt", `"no-new-privileges": true in /etc/docker/daemon.json holds for every container of a node`},
	{"devices_extra", `have its nodes' engines give devices to containers by a default runtime, or use the docker driver on each machine`},
	{"devices", `leave it out; GPUs are reserved by generic_resources = { "NVIDIA-GPU" = 1 }`},
	{"gpus_per_worker", `write generic_resources = { "NVIDIA-GPU" = 1 }, in the kind that the nodes announce`},
}

// constraint is how Swarm spells where a task may run.
var constraint = regexp.MustCompile(`^\s*(node\.(id|hostname|ip|role|platform\.(os|arch)|labels\.[^\s=!]+)|engine\.labels\.[^\s=!]+)\s*(==|!=)\s*\S.*$`)

// checkSwarm holds a pool to what a Swarm can do.
func (d *decoder) checkSwarm(path string, p *Pool) {
	for _, n := range notOfSwarm {
		if d.written(sub(path, n.name)) {
			d.failf(sub(path, n.name), "%s: a Swarm service has none; %s", n.name, n.instead)
		}
	}
	for _, text := range p.Container.Constraints {
		if !constraint.MatchString(text) {
			d.failf(sub(path, "constraints"), `constraint %q: write one such as "node.labels.gpu == b60", "node.role != manager" or "node.hostname == gpu-1"`, text)
		}
	}
	for kind, n := range p.Container.GenericResources {
		if n < 1 || strings.TrimSpace(kind) != kind || kind == "" {
			d.failf(sub(path, "generic_resources"), "generic_resources: %q = %d: a kind that nodes announce, and how many of it each worker takes, at least 1", kind, n)
		}
	}
	d.checkVolumes(sub(path, "volumes"), p.Container.Volumes)
}

// checkVolumes holds volumes to what a Swarm can be told.
func (d *decoder) checkVolumes(path string, list []string) {
	for _, text := range list {
		if _, err := ParseVolume(text); err != nil {
			d.failf(path, "volumes: %v", err)
		}
	}
}

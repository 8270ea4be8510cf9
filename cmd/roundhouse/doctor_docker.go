package main

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"

	"roundhouse/supervisor/moby"
)

// dockerHost says where the Docker engine is, as Docker's own client is told.
func (c *console) dockerHost() moby.Host {
	var host moby.Host
	host.URL, _ = c.env("DOCKER_HOST")
	host.CertPath, _ = c.env("DOCKER_CERT_PATH")
	verify, _ := c.env("DOCKER_TLS_VERIFY")
	host.TLSVerify = verify != ""
	folder, ok := c.env("DOCKER_CONFIG")
	if home, found := c.env("HOME"); !ok && found {
		folder = filepath.Join(home, ".docker")
	}
	if folder != "" {
		host.Auth = moby.Auths(folder)
	}
	return host
}

// docker reports whether the engine that a pool needs answers, and what it lacks.
func (d *doctor) docker() {
	host, ok := d.env("DOCKER_HOST")
	if !ok {
		host = "unix:///var/run/docker.sock"
	}
	network, address, found := strings.Cut(host, "://")
	if !found {
		network, address = "unix", host
	}
	if network == "ssh" {
		d.note("note", "docker", "", "%s is reached by ssh; `docker -H %s version` tries it", host, host)
		return
	}
	err := d.facts.dial(network, address)
	switch {
	case err == nil:
		d.note("ok", "docker", "", "an engine answers at %s", host)
		d.enginePowers(host)
	case errors.Is(err, syscall.EACCES):
		d.note("fail", "docker", "run roundhouse as root, or usermod -aG docker USER (which is as good as root)", "this user may not open %s", host)
	default:
		d.note("fail", "docker", "start it (systemctl start docker), or set DOCKER_HOST (a rootless engine's: unix://$XDG_RUNTIME_DIR/docker.sock)", "no Docker engine answers at %s: %v", host, err)
	}
}

// enginePowers says what an engine cannot do that the pools ask for. One that does not tell,
// behind a guard, is taken for root's.
func (d *doctor) enginePowers(at string) {
	powers, err := d.facts.engine(d.dockerHost())
	if err != nil {
		d.note("note", "docker", "", "the engine at %s does not tell what it can do: %v", at, err)
		return
	}
	if !powers.Confines || !powers.Measures {
		lacks := []string{}
		if !powers.Confines {
			lacks = append(lacks, "are on all CPUs and memory nodes, whatever the plan says")
		}
		if !powers.Measures {
			lacks = append(lacks, "tell nothing of their memory, so that memory_growth sees none")
		}
		d.note("warn", "docker", "boot with control groups of version 2 and systemd, and let the engine's user have them: Delegate=cpu cpuset io memory pids in user@.service", "the engine at %s has not all control groups: its containers %s", at, strings.Join(lacks, ", and "))
	}
	if !powers.Rootless {
		return
	}
	for _, p := range d.cfg.Pools {
		if p.Driver != "docker" {
			continue
		}
		if p.Container.NetworkMode == "host" {
			d.note("fail", "pool "+p.Name, "leave network_mode out: the port is published on the loopback", "network_mode = \"host\": the engine at %s is rootless, and its host network is one of its own, where no door reaches", at)
		}
		if p.Devices != "cpu" {
			d.note("warn", "pool "+p.Name, "open the nodes to the engine's user: setfacl -m u:USER:rw /dev/dri/renderD* (and a udev rule that does so)", "the engine at %s is rootless: its containers are in no group of this machine's, render among them", at)
		}
	}
}

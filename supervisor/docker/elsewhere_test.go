package docker

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"

	"roundhouse/configs"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/moby"
)

// A worker whose port no door could reach is an error before anything is started, and
// not one that waits for its ready_timeout.
func TestElsewhere(t *testing.T) {
	for _, c := range []struct {
		url     string
		inside  bool
		network string
		refused bool
	}{
		{url: ""},
		{url: "unix:///var/run/docker.sock"},
		{url: "tcp://127.0.0.1:2376"},
		{url: "tcp://[::1]:2376"},
		{url: "ssh://root@localhost"},
		{url: "tcp://192.0.2.7:2376", refused: true},
		{url: "ssh://root@gpu.example.org", refused: true},
		{url: "tcp://docker:2376", network: "n", refused: true},
		{url: "tcp://docker:2376", inside: true, network: "n"}, // the door is beside them
	} {
		d := &Driver{host: moby.Host{URL: c.url}, inside: c.inside}
		spec := driver.Spec{Pool: "p", Name: "1", Container: configs.Container{Image: "i"}}
		if c.network != "" {
			spec.Container.Networks = []string{c.network}
		}
		_, err := d.plan(t.Context(), spec)
		if refused := err != nil && strings.Contains(err.Error(), "run roundhouse on that machine"); refused != c.refused || err != nil && !refused {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A container with several ports has one address, whatever order its engine tells them in.
func TestPublishedURL(t *testing.T) {
	c := container.InspectResponse{NetworkSettings: &container.NetworkSettings{}}
	c.NetworkSettings.Ports = nat.PortMap{
		"9000/tcp": {{HostPort: "19000"}}, "8000/tcp": {{HostPort: "18000"}}, "10000/tcp": {{HostPort: "20000"}}, "53/udp": {{HostPort: "53"}}, "80/tcp": nil,
	}
	for range 50 {
		if got := publishedURL(c, "127.0.0.1"); got != "http://127.0.0.1:18000" {
			t.Fatal(got)
		}
	}
}

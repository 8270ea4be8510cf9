package guard

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"roundhouse/supervisor/moby"
)

// create makes the body of a container's creation anew: what may be set is moved into
// it field by field, and what is left behind is refused.
func create(g *Guard, r *http.Request, _ string) (*order, error) {
	if err := onlyQuery(r, queries{"name": anyText}); err != nil {
		return nil, err
	}
	var asked container.CreateRequest
	if err := decodeBody(r, &asked); err != nil {
		return nil, err
	}
	if asked.Config == nil {
		asked.Config = &container.Config{}
	}
	policy := g.policy()
	if owner := asked.Labels[moby.LabelInstance]; owner == "" || owner != policy.Instance {
		return nil, fmt.Errorf("Labels: the label %s is %q and not %q", moby.LabelInstance, owner, policy.Instance)
	}
	w, known := policy.worker(asked.Labels)
	if !known {
		return nil, fmt.Errorf("Labels: %s=%q and %s=%q are no worker of the configuration", moby.LabelPool, asked.Labels[moby.LabelPool], moby.LabelWorker, asked.Labels[moby.LabelWorker])
	}
	name := r.URL.Query().Get("name")
	if !slices.Contains(w.names, name) {
		return nil, fmt.Errorf("the name %q is not %s's, which is %s", name, w.id, strings.Join(w.names, " or "))
	}
	image, err := g.image(r, w, asked.Image)
	if err != nil {
		return nil, err
	}
	made, err := w.container(&asked, g.cards())
	if err != nil {
		return nil, err
	}
	made.Image = image
	return &order{path: "/containers/create", query: url.Values{"name": {name}}, body: made}, nil
}

// container is what goes on of what was asked. It empties what it takes.
func (w worker) container(asked *container.CreateRequest, cards cards) (*container.CreateRequest, error) {
	made := &container.CreateRequest{HostConfig: &container.HostConfig{}}
	var err error
	if made.Config, err = w.config(asked.Config); err != nil {
		return nil, err
	}
	asked.Config = nil
	in := asked.HostConfig
	if in == nil {
		in = &container.HostConfig{}
	}
	mode := in.NetworkMode
	if err := w.host(made.HostConfig, in, cards); err != nil {
		return nil, err
	}
	asked.HostConfig = nil
	if asked.NetworkingConfig != nil {
		if made.NetworkingConfig, err = w.networking(asked.NetworkingConfig, mode); err != nil {
			return nil, err
		}
	}
	asked.NetworkingConfig = nil
	return made, unset("", *asked)
}

// unset refuses what was asked and not taken.
func unset(where string, rest any) error {
	if field := set(reflect.ValueOf(rest)); field != "" {
		return fmt.Errorf("%s%s may not be set", where, field)
	}
	return nil
}

// config takes what describes the container's inside only.
func (w worker) config(in *container.Config) (*container.Config, error) {
	out := &container.Config{}
	move(&out.Cmd, &in.Cmd)
	move(&out.Entrypoint, &in.Entrypoint)
	move(&out.Env, &in.Env)
	move(&out.WorkingDir, &in.WorkingDir)
	move(&out.User, &in.User)
	move(&out.Hostname, &in.Hostname)
	move(&out.ExposedPorts, &in.ExposedPorts)
	move(&out.StopSignal, &in.StopSignal)
	move(&out.StopTimeout, &in.StopTimeout)
	move(&out.Healthcheck, &in.Healthcheck)
	move(&out.Tty, &in.Tty)
	move(&out.OpenStdin, &in.OpenStdin)
	move(&out.StdinOnce, &in.StdinOnce)
	move(&out.AttachStdin, &in.AttachStdin)
	move(&out.AttachStdout, &in.AttachStdout)
	move(&out.AttachStderr, &in.AttachStderr)
	if err := w.environment(out.Env); err != nil {
		return nil, err
	}
	var err error
	if out.Labels, err = w.labels(in.Labels); err != nil {
		return nil, err
	}
	in.Labels, in.Image = nil, ""
	return out, unset("", *in)
}

// environment holds the variables that a runtime on the host reads, by which NVIDIA's
// gives out GPUs, to those of the configuration.
func (w worker) environment(env []string) error {
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "NVIDIA_") {
			continue
		}
		inEngine, ofEngine := w.engine.Environment[name]
		given, ok := w.among.Environment[name]
		if ofEngine {
			given, ok = inEngine, true
		}
		if !ok || given != value {
			return fmt.Errorf("Env: %s is not the configuration's", name)
		}
	}
	return nil
}

// labels are ours and the configuration's. Programs on the host do what labels tell
// them, and an image's own are added by the engine, but not to those that are there.
func (w worker) labels(asked map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for name, value := range asked {
		if given, ok := w.among.Labels[name]; !slices.Contains(ourLabels, name) && (!ok || given != value) {
			return nil, fmt.Errorf("Labels: %s is not the configuration's", name)
		}
		out[name] = value
	}
	for _, name := range ourLabels {
		if _, ok := out[name]; !ok {
			out[name] = ""
		}
	}
	return out, nil
}

// networking lets a container on the pool's networks, with nothing of its own asking there.
func (w worker) networking(in *network.NetworkingConfig, mode container.NetworkMode) (*network.NetworkingConfig, error) {
	out := &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{}}
	for name, endpoint := range in.EndpointsConfig {
		if name != string(mode) && !slices.Contains(w.among.Networks, name) { // the mode was checked before
			return nil, fmt.Errorf("NetworkingConfig.EndpointsConfig: %q is no network of the pool %q", name, w.pool.Name)
		}
		if endpoint != nil {
			if err := unset("NetworkingConfig.EndpointsConfig."+name+".", *endpoint); err != nil {
				return nil, err
			}
		}
		out.EndpointsConfig[name] = &network.EndpointSettings{}
	}
	in.EndpointsConfig = nil
	return out, unset("NetworkingConfig.", *in)
}

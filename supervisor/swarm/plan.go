package swarm

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/swarm"

	"roundhouse/configs"
	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/moby"
)

// labelPort is the label of the port that the server inside listens on: a service has it
// beside those of containers.
const labelPort = "roundhouse.port"

// plan turns a Spec into a service of one task.
func (d *Driver) plan(spec driver.Spec, image string) (swarm.ServiceSpec, error) {
	c := spec.Container
	mounts, err := mountsOf(c)
	if err != nil {
		return swarm.ServiceSpec{}, err
	}
	port := spec.Port
	if port == 0 {
		port = moby.DefaultPort
	}
	command := c.Command
	if command == nil {
		command = moby.Arguments(spec, false, port)
	}
	labels := moby.Labels(spec, d.instance)
	labels[labelPort], labels[moby.LabelImage] = strconv.Itoa(port), c.Image
	one, grace := uint64(1), spec.Grace
	out := swarm.ServiceSpec{
		Annotations: swarm.Annotations{Name: moby.Name(spec), Labels: labels},
		Mode:        swarm.ServiceMode{Replicated: &swarm.ReplicatedService{Replicas: &one}},
		TaskTemplate: swarm.TaskSpec{
			ContainerSpec: &swarm.ContainerSpec{
				// Without our instance's label: the driver of containers would take it for its own.
				Image: image, Labels: c.Labels, Command: c.Entrypoint, Args: command, Env: moby.Environment(spec), User: c.User,
				Mounts: mounts, StopGracePeriod: &grace, Ulimits: moby.Ulimits(spec), CapabilityAdd: moby.Capabilities(c), Hosts: hosts(c),
				Healthcheck: &container.HealthConfig{Test: []string{"NONE"}}, // Swarm would end what its image's own check finds busy
			},
			RestartPolicy: &swarm.RestartPolicy{Condition: swarm.RestartPolicyConditionNone}, // who restarts is one, and that is us
			Placement:     &swarm.Placement{Constraints: c.Constraints},
			Resources:     &swarm.ResourceRequirements{Limits: limits(c), Reservations: &swarm.Resources{GenericResources: generic(c)}},
			LogDriver:     &swarm.Driver{Name: moby.LogDriver, Options: moby.LogOptions()},
		},
		EndpointSpec: &swarm.EndpointSpec{Mode: swarm.ResolutionModeDNSRR}, // one task needs no address before it
	}
	if c.Init {
		out.TaskTemplate.ContainerSpec.Init = &c.Init
	}
	for _, n := range c.Networks {
		out.TaskTemplate.Networks = append(out.TaskTemplate.Networks, swarm.NetworkAttachmentConfig{Target: n})
	}
	if !d.inside || len(c.Networks) == 0 { // the node picks a free port where none is configured
		out.EndpointSpec.Ports = []swarm.PortConfig{{
			Protocol: swarm.PortConfigProtocolTCP, TargetPort: uint32(port), PublishedPort: uint32(spec.Port), PublishMode: swarm.PortConfigPublishModeHost,
		}}
	}
	return out, nil
}

// limits bound a service's task; nil: nothing does.
func limits(c configs.Container) *swarm.Limit {
	if c.Memory == 0 && c.PidsLimit == 0 {
		return nil
	}
	return &swarm.Limit{MemoryBytes: int64(c.Memory), Pids: c.PidsLimit}
}

// hosts are the further lines of /etc/hosts, as the file itself has them.
func hosts(c configs.Container) []string {
	var out []string
	for _, line := range c.ExtraHosts {
		name, address, _ := strings.Cut(line, ":")
		out = append(out, address+" "+name)
	}
	return out
}

// network is the one on which the door reaches a service; empty: it does not stand on
// one, and reaches it at its node.
func (s service) network() string {
	if e := s.Spec.EndpointSpec; e != nil && len(e.Ports) > 0 || len(s.Spec.TaskTemplate.Networks) == 0 {
		return ""
	}
	return s.Spec.TaskTemplate.Networks[0].Target
}

// generic is what is set aside on a node, in a fixed order.
func generic(c configs.Container) []swarm.GenericResource {
	var out []swarm.GenericResource
	for kind, n := range c.GenericResources {
		out = append(out, swarm.GenericResource{DiscreteResourceSpec: &swarm.DiscreteGenericResource{Kind: kind, Value: n}})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].DiscreteResourceSpec.Kind < out[j].DiscreteResourceSpec.Kind })
	return out
}

// mountsOf are the volumes, and the shared memory: Swarm knows none but by a file
// system in memory where it lies.
func mountsOf(c configs.Container) ([]mount.Mount, error) {
	var out []mount.Mount
	for _, text := range c.Volumes {
		v, err := configs.ParseVolume(text)
		if err != nil {
			return nil, fmt.Errorf("volumes: %w", err)
		}
		m := mount.Mount{Type: mount.TypeVolume, Source: v.Source, Target: v.Target, ReadOnly: v.ReadOnly}
		if v.Bind() {
			m.Type = mount.TypeBind
			if v.Propagation != "" {
				m.BindOptions = &mount.BindOptions{Propagation: mount.Propagation(v.Propagation)}
			}
		}
		out = append(out, m)
	}
	if c.ShmSize > 0 {
		out = append(out, mount.Mount{Type: mount.TypeTmpfs, Target: "/dev/shm", TmpfsOptions: &mount.TmpfsOptions{SizeBytes: int64(c.ShmSize), Mode: 0o1777}})
	}
	return out, nil
}

// labelled reads what the labels say of a service.
func labelled(s service) (driver.Instance, error) {
	l := s.Spec.Labels
	generation, err := strconv.ParseUint(l[moby.LabelGeneration], 10, 64)
	if err != nil {
		return driver.Instance{}, fmt.Errorf("the service %s: label %s: %w", s.Spec.Name, moby.LabelGeneration, err)
	}
	return driver.Instance{ID: l[moby.LabelWorker], Generation: generation, Hash: l[moby.LabelHash], Image: l[moby.LabelImage]}, nil
}

// grace is how long a service's task has to end.
func (s service) grace() time.Duration {
	if c := s.Spec.TaskTemplate.ContainerSpec; c != nil && c.StopGracePeriod != nil {
		return *c.StopGracePeriod
	}
	return 10 * time.Second
}

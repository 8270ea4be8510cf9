package swarm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"

	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/moby"
)

// engine is all that this package asks of Docker.
type engine interface {
	Info(ctx context.Context) (system.Info, error)
	ServiceList(ctx context.Context, options swarm.ServiceListOptions) ([]swarm.Service, error)
	ServiceInspectWithRaw(ctx context.Context, id string, options swarm.ServiceInspectOptions) (swarm.Service, []byte, error)
	ServiceCreate(ctx context.Context, spec swarm.ServiceSpec, options swarm.ServiceCreateOptions) (swarm.ServiceCreateResponse, error)
	ServiceUpdate(ctx context.Context, id string, version swarm.Version, spec swarm.ServiceSpec, options swarm.ServiceUpdateOptions) (swarm.ServiceUpdateResponse, error)
	ServiceRemove(ctx context.Context, id string) error
	ServiceLogs(ctx context.Context, id string, options container.LogsOptions) (io.ReadCloser, error)
	TaskList(ctx context.Context, options swarm.TaskListOptions) ([]swarm.Task, error)
	NodeList(ctx context.Context, options swarm.NodeListOptions) ([]swarm.Node, error)
	NetworkInspect(ctx context.Context, id string, options network.InspectOptions) (network.Inspect, error)
	ContainerInspect(ctx context.Context, id string) (container.InspectResponse, error)
	ImageInspect(ctx context.Context, id string, options ...client.ImageInspectOption) (image.InspectResponse, error)
	DistributionInspect(ctx context.Context, image, auth string) (registry.DistributionInspect, error)
	Events(ctx context.Context, options events.ListOptions) (<-chan events.Message, <-chan error)
	Close() error
}

// errNoManager says what an engine must be.
var errNoManager = errors.New("it is no manager of a Swarm")

// manager reports whether the engine is a manager, and if not, what to do.
func manager(info system.Info) error {
	switch s := info.Swarm; {
	case s.ControlAvailable:
		return nil
	case s.LocalNodeState == swarm.LocalNodeStateInactive:
		return fmt.Errorf("%w: the Docker engine %s is in none; `docker swarm init` there makes one, or set DOCKER_HOST to a manager", errNoManager, info.Name)
	case s.LocalNodeState == swarm.LocalNodeStateLocked:
		return fmt.Errorf("%w: the Swarm of the Docker engine %s is locked; `docker swarm unlock` there", errNoManager, info.Name)
	case s.LocalNodeState == swarm.LocalNodeStateActive:
		return fmt.Errorf("%w: the Docker engine %s only runs tasks of one; set DOCKER_HOST to a manager, or `docker node promote %s`", errNoManager, info.Name, info.Name)
	default:
		return fmt.Errorf("%w: the Docker engine %s is %s: %s", errNoManager, info.Name, s.LocalNodeState, s.Error)
	}
}

// quorumless are the words in which managers without a leader answer, whatever the
// status of the answer.
var quorumless = []string{"does not have a leader", "too few managers", "DeadlineExceeded", "context deadline exceeded", "not a swarm manager", "can't be used to view or modify cluster state"}

// engineError tells an error of the Swarm's from one for which it was not there.
func engineError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, driver.ErrAway) {
		return err
	}
	away := moby.Unreachable(err) || cerrdefs.IsUnavailable(err)
	for _, words := range quorumless {
		away = away || strings.Contains(err.Error(), words)
	}
	if away {
		return fmt.Errorf("%w: %w", driver.ErrAway, err)
	}
	return err
}

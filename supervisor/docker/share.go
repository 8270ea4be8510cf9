package docker

import (
	"context"
	"errors"
	"io"
	"sort"
	"strconv"
	"sync"
	"syscall"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/docker/go-units"

	"roundhouse/supervisor/core"
	"roundhouse/supervisor/driver"
)

// What stands here is the same for containers and for the services of a Swarm,
// whose driver uses it as well.

// The labels of containers and services.
const (
	LabelInstance   = "roundhouse.instance"
	LabelPool       = "roundhouse.pool"
	LabelWorker     = "roundhouse.worker"
	LabelHash       = "roundhouse.config_hash"
	LabelGeneration = "roundhouse.generation"
	LabelURL        = "roundhouse.url"
)

// Labels are those of the configuration, and ours over them.
func Labels(spec driver.Spec, instance string) map[string]string {
	labels := map[string]string{}
	for k, v := range spec.Container.Labels {
		labels[k] = v
	}
	labels[LabelInstance], labels[LabelPool], labels[LabelWorker] = instance, spec.Pool, spec.ID()
	labels[LabelHash], labels[LabelGeneration] = spec.Hash, strconv.FormatUint(spec.Generation, 10)
	return labels
}

// LogDriver keeps what a worker writes where the engine can read it again.
const LogDriver = "json-file"

// LogOptions bound it.
func LogOptions() map[string]string { return map[string]string{"max-size": "64m", "max-file": "4"} }

// Ulimits are the configuration's, in a fixed order.
func Ulimits(spec driver.Spec) []*units.Ulimit {
	var out []*units.Ulimit
	for name, limit := range spec.Container.Ulimits {
		out = append(out, &units.Ulimit{Name: name, Soft: limit, Hard: limit})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Name is what a worker's container is called.
func Name(spec driver.Spec) string {
	if _, err := strconv.Atoi(spec.Name); err == nil || spec.Name == core.Relief {
		return "roundhouse-" + spec.Pool + "-" + spec.Name
	}
	return spec.Name
}

// Environment joins the container's and the engine's, in a fixed order.
func Environment(spec driver.Spec) []string {
	all := map[string]string{}
	for k, v := range spec.Container.Environment {
		all[k] = v
	}
	for k, v := range spec.Engine.Environment {
		all[k] = v
	}
	out := make([]string, 0, len(all))
	for k, v := range all {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return out
}

// Arguments are the flags of `vllm serve`. On the host's own network the
// engine listens on the loopback: the door alone is for the others.
func Arguments(spec driver.Spec, onHost bool, port int) []string {
	e := spec.Engine
	address := "0.0.0.0"
	if onHost {
		address = "127.0.0.1"
	}
	args := []string{"--host", address, "--port", strconv.Itoa(port)}
	if e.Model != "" {
		args = append([]string{"--model", e.Model}, args...)
	}
	if len(e.ServedModelName) > 0 {
		args = append(append(args, "--served-model-name"), e.ServedModelName...)
	}
	if e.Quantization != "" {
		args = append(args, "--quantization", e.Quantization)
	}
	if e.MaxModelLen > 0 {
		args = append(args, "--max-model-len", strconv.Itoa(e.MaxModelLen))
	}
	return append(args, e.Args...)
}

// Output turns an engine's log stream, in which standard output and error take
// turns, into what was written. It ends with raw, which is closed with it.
func Output(raw io.ReadCloser) io.ReadCloser {
	out, in := io.Pipe()
	go func() { // ends with the stream, which its context or the reader's Close ends
		_, err := stdcopy.StdCopy(in, in, raw)
		raw.Close()
		in.CloseWithError(err)
	}()
	return out
}

// Unreachable says whether an error says of an engine that it was not there.
func Unreachable(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return client.IsErrConnectionFailed(err)
}

// Follow hints at each of an engine's events until their stream breaks, and first that
// it begins now: what happened before is found by listing.
func Follow(ctx context.Context, e interface {
	Events(ctx context.Context, options events.ListOptions) (<-chan events.Message, <-chan error)
}, of filters.Args, hint driver.Hint) {
	messages, errs := e.Events(ctx, events.ListOptions{Filters: of})
	for hint.Give(); ; hint.Give() {
		select {
		case _, open := <-messages:
			if !open {
				return
			}
		case <-errs:
			return
		}
	}
}

// Version is what an engine and its client have agreed upon.
type Version struct {
	mu      sync.Mutex // held while it is settled
	settled bool
}

// Settle settles it once: the client would do so by itself, and races where two
// calls are its first.
func (v *Version) Settle(ctx context.Context, c *client.Client) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.settled {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ping, err := c.Ping(ctx)
	if err != nil {
		return err
	}
	c.NegotiateAPIVersionPing(ping)
	v.settled = true
	return nil
}

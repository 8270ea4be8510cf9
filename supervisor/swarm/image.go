package swarm

import (
	"context"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"

	"roundhouse/supervisor/driver"
)

// Resolve returns what every node is to run by the configuration's name for it, now.
func (d *Driver) Resolve(ctx context.Context, spec driver.Spec) (string, error) {
	if err := d.agree(ctx); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	name, _, err := d.image(ctx, spec)
	return name, engineError(ctx, err)
}

// resolved is image for a start: what its preparation has found holds.
func (d *Driver) resolved(ctx context.Context, spec driver.Spec) (name, auth string, err error) {
	if spec.Image == "" {
		return d.image(ctx, spec)
	}
	if d.auth != nil && !strings.HasPrefix(spec.Image, "sha256:") {
		auth, err = d.auth(ctx, spec.Container.Image)
	}
	return spec.Image, auth, err
}

// image says what every node is to run, so that all run the same, and with which word
// for the registry. A tag is resolved to its digest: by what the manager has where
// the pull policy is "missing", by the registry where it is "always" or the manager
// has none. What was built here and comes from no registry, and all of pull policy
// "never", is known by its ID: a node that has not got it refuses the task, and no
// node asks a registry.
func (d *Driver) image(ctx context.Context, spec driver.Spec) (name, auth string, err error) {
	name, policy := spec.Container.Image, spec.Container.PullPolicy
	have, err := d.engine.ImageInspect(ctx, name)
	if err != nil && !cerrdefs.IsNotFound(err) {
		return "", "", fmt.Errorf("cannot look for the image %s: %w", name, err)
	}
	missing := err != nil
	named, err := reference.ParseDockerRef(name)
	if err != nil {
		return "", "", fmt.Errorf("the image %s: %w", name, err)
	}
	if policy == "never" {
		if missing {
			return "", "", fmt.Errorf("the image %s is not at this manager, which names it to the nodes, and pull_policy is \"never\"", name)
		}
		return have.ID, "", nil
	}
	if d.auth != nil {
		if auth, err = d.auth(ctx, name); err != nil {
			return "", "", err
		}
	}
	if _, pinned := named.(reference.Canonical); pinned {
		return name, auth, nil
	}
	if !missing && policy != "always" {
		for _, digest := range have.RepoDigests {
			if r, err := reference.ParseDockerRef(digest); err == nil && reference.TrimNamed(r).Name() == reference.TrimNamed(named).Name() {
				return digest, auth, nil
			}
		}
		return have.ID, "", nil
	}
	found, err := d.engine.DistributionInspect(ctx, name, auth)
	if err != nil {
		return "", "", fmt.Errorf("cannot ask its registry for the image %s: %w", name, err)
	}
	return reference.FamiliarString(named) + "@" + found.Descriptor.Digest.String(), auth, nil
}

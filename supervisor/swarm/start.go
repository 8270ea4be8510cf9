package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"

	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/moby"
)

// Prepare finds out which image it would be, and whether networks and a node are
// there for it. No node pulls the image before a task of its own asks for it.
func (d *Driver) Prepare(ctx context.Context, spec driver.Spec) error {
	if err := d.agree(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 4*callTimeout)
	defer cancel()
	if _, _, err := d.image(ctx, spec); err != nil {
		return engineError(ctx, err)
	}
	if err := networks(ctx, d.engine, spec.Container.Networks); err != nil {
		return engineError(ctx, err)
	}
	nodes, err := d.engine.NodeList(ctx, swarm.NodeListOptions{})
	if err != nil {
		return engineError(ctx, err)
	}
	return fits(spec.Container, nodes)
}

// Start makes the worker's service and returns once its task runs, or has run.
// Whatever fails, no service of this start is left.
func (d *Driver) Start(ctx context.Context, spec driver.Spec) error {
	if err := d.agree(ctx); err != nil {
		return err
	}
	return engineError(ctx, d.begin(ctx, spec))
}

// begin does Start's work.
func (d *Driver) begin(ctx context.Context, spec driver.Spec) error {
	call, cancel := context.WithTimeout(ctx, 4*callTimeout)
	defer cancel()
	image, auth, err := d.resolved(call, spec)
	if err != nil {
		return err
	}
	if err := d.clear(ctx, spec); err != nil {
		return err
	}
	plan, err := d.plan(spec, image)
	if err != nil {
		return err
	}
	made, err := d.engine.ServiceCreate(call, plan, swarm.ServiceCreateOptions{EncodedRegistryAuth: auth})
	if nameTaken(err) {
		return fmt.Errorf("the service name %q is taken by one that is not ours, which is left alone: rename one of the two", plan.Name)
	}
	if err != nil {
		return fmt.Errorf("cannot create the service %s: %w", plan.Name, err)
	}
	if err := d.arrived(ctx, spec.ID(), made.ID); err != nil {
		clean, done := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer done()
		if removed := d.engine.ServiceRemove(clean, made.ID); removed != nil && !cerrdefs.IsNotFound(removed) {
			err = errors.Join(err, removed)
		}
		return fmt.Errorf("cannot start the service %s: %w", plan.Name, err)
	}
	return nil
}

// nameTaken reports whether a service of a name is there already; engines of different
// age say so by different statuses.
func nameTaken(err error) bool {
	return cerrdefs.IsConflict(err) || err != nil && strings.Contains(err.Error(), "name conflicts with an existing object")
}

// outOfSequence reports whether somebody else has changed what was to be changed.
func outOfSequence(err error) bool {
	return err != nil && strings.Contains(err.Error(), "update out of sequence")
}

// clear takes away what the worker's last generations left: what has ended by what
// List says of it. Of that a task may be there still, which is ended first: what Swarm
// was told to put in the last one's place, or what finds no place of a start whose
// clean-up no manager has heard.
func (d *Driver) clear(ctx context.Context, spec driver.Spec) error {
	list, err := d.ours(ctx, spec.ID())
	if err != nil {
		return err
	}
	for _, s := range list {
		if len(s.live()) > 0 {
			if i, err := s.instance(); err != nil || i.Running {
				return errors.Join(fmt.Errorf("the service %s of generation %s still runs", s.Spec.Name, s.Spec.Labels[moby.LabelGeneration]), err)
			}
			end, done := context.WithTimeout(ctx, s.grace()+callTimeout)
			defer done()
			if err := d.scaleToNothing(end, s.ID); err != nil {
				return fmt.Errorf("cannot end what is left of %s: %w", s.Spec.Name, err)
			}
			if err := d.gone(end, spec.ID(), s.ID); err != nil {
				return err
			}
		}
		if err := d.remove(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// arrived waits until a new service's task runs or has run. One that finds no place
// is an error in Swarm's own words, and so is one that its node refuses.
func (d *Driver) arrived(ctx context.Context, id, made string) error {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	began, homeless, seen := time.Now(), time.Time{}, false
	answered := began
	for {
		list, err := d.ours(ctx, id)
		switch {
		case err == nil:
			answered = time.Now()
		case !errors.Is(engineError(ctx, err), driver.ErrAway) || time.Since(answered) > callTimeout:
			return err // managers choose another leader within seconds, and the task goes on meanwhile
		}
		there := slices.ContainsFunc(list, func(s service) bool { return s.ID == made })
		if err == nil && !there && (seen || time.Since(began) > callTimeout) {
			return errors.New("somebody has removed it")
		}
		seen = seen || there
		for _, s := range list {
			t := s.task()
			switch {
			case s.ID != made:
			case t == nil && time.Since(began) > callTimeout:
				return errors.New("Swarm has made no task for it")
			case t == nil:
			case t.Status.State == swarm.TaskStateRunning:
				return nil
			case t.Status.State == swarm.TaskStateRejected:
				return errors.New(how(*t))
			case ran(*t):
				return nil // how it ended, List says
			case ended(t.Status.State):
				return errors.New(how(*t))
			case !wanted(*t):
				why, _ := s.leaving(*t)
				return errors.New(why)
			case placed(*t):
				homeless = time.Time{}
			case homeless.IsZero():
				homeless = time.Now()
			case t.Status.Err != "" && time.Since(homeless) > placeWait && !s.settling(), time.Since(homeless) > callTimeout:
				return errors.New(unplaced(*t))
			}
		}
		if driver.Wait(ctx, taskWait); ctx.Err() != nil {
			return fmt.Errorf("its task does not run yet: %w", ctx.Err())
		}
	}
}

package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"roundhouse/supervisor/driver"
	"roundhouse/supervisor/moby"
)

// shortest is how long a stream of events must have been open for its end to say
// that the engine has gone: where none is allowed, each ends at once.
const shortest = 3 * time.Second

// confirm makes sure that containers which have ended since they were last listed
// did so by themselves. An engine that ends takes its containers with it, and
// goes on answering on connections that it has; it takes no new ones by then. An
// error says that it ends, or has begun anew since.
func (d *Driver) confirm(ctx context.Context, ended map[string]bool) error {
	breaks := d.breaks.Load()
	d.mu.Lock()
	before, news := d.heard, false
	if d.failed {
		before = breaks // whoever asked knows that it was away
	}
	for id := range ended {
		news = news || !d.ended[id]
	}
	d.mu.Unlock()
	var err error
	if news {
		err = d.reach(ctx)
	}
	if err == nil && news && before != breaks {
		err = errors.New("its stream of events broke off: it has begun anew")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = breaks
	if err != nil {
		return fmt.Errorf("%w: %w", driver.ErrAway, err)
	}
	d.ended = ended
	return nil
}

// reach asks the engine for a sign of life on a connection of its own.
func (d *Driver) reach(ctx context.Context) error {
	e, err := moby.Connect(d.host)
	if err != nil {
		return err
	}
	defer e.Close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = e.Ping(ctx)
	return err
}

// engineError tells an error of the engine's from one for which it was not there. before
// are the breaks when it was asked.
func (d *Driver) engineError(ctx context.Context, before int64, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if moby.Unreachable(err) || d.reach(ctx) != nil || d.breaks.Load() != before {
		return fmt.Errorf("%w: %w", driver.ErrAway, err)
	}
	return err
}

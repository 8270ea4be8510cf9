package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"roundhouse/configs/workerid"
)

// selection is what an operator names: a pool, or one worker of it.
type selection struct {
	pool string
	name string // empty: the whole pool
}

func (t selection) String() string {
	if t.name == "" {
		return t.pool
	}
	return workerid.Of(t.pool, t.name)
}

// resolve finds what arg means: a pool, pool/name, or a worker's name that
// only one pool has. A pool goes before a worker of the same name.
func resolve(arg string, workers []workerAnswer) (selection, error) {
	var pools, found []string
	for _, w := range workers {
		if !slices.Contains(pools, w.Pool) {
			pools = append(pools, w.Pool)
		}
		if w.ID == arg {
			return selection{w.Pool, w.Name}, nil
		}
		if w.Name == arg {
			found = append(found, w.ID)
		}
	}
	switch {
	case slices.Contains(pools, arg):
		return selection{pool: arg}, nil
	case len(found) == 1:
		pool, name := workerid.Split(found[0])
		return selection{pool, name}, nil
	case len(found) > 1:
		return selection{}, usageError("%q is the name of several workers: %s", arg, strings.Join(found, ", "))
	}
	return selection{}, usageError("there is no pool or worker %q; there are the pools %s", arg, strings.Join(pools, ", "))
}

// resolve asks for the workers and finds what arg means.
func (a *client) resolve(ctx context.Context, arg string) (selection, []workerAnswer, error) {
	all, err := a.workers(ctx)
	if err != nil {
		return selection{}, nil, err
	}
	t, err := resolve(arg, all.Workers)
	if err != nil {
		return selection{}, nil, err
	}
	return t, slices.DeleteFunc(all.Workers, func(w workerAnswer) bool {
		return w.Pool != t.pool || t.name != "" && w.Name != t.name
	}), nil
}

// describe says in a few words how a worker is.
func (w workerAnswer) describe() string {
	text := string(w.State)
	if w.Drain != nil {
		text += fmt.Sprintf(", %s in flight", count(w.Requests.InFlight, "request"))
		if w.Drain.Deadline != nil {
			text += ", until " + w.Drain.Deadline.Format("15:04:05") + " UTC at most"
		}
	}
	if w.Reason != nil {
		text += " (" + *w.Reason + ")"
	}
	return text
}

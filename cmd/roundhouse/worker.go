package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"roundhouse/balancer/control/phase"
)

// pollEvery is how often a command that waits looks again.
const pollEvery = 300 * time.Millisecond

// workerVerb is a command that tells workers to do something.
type workerVerb struct {
	name, short, long string
	goal              phase.Phase // the state that --wait waits for
}

// workerCommands are drain, undrain, stop and start.
func workerCommands(c *console) []*cobra.Command {
	verbs := []workerVerb{
		{"drain", "Take workers out of service, without stopping them",
			"Take workers out of service. They get no new requests and finish those they\nhave; at the end of drain_timeout the rest goes on at other workers.", phase.Drained},
		{"undrain", "Put drained workers back into service", "", phase.Ready},
		{"stop", "Drain workers and stop them",
			"Drain workers and stop them. They stay stopped, through restarts of\nroundhouse too, until `roundhouse start`.", phase.Stopped},
		{"start", "Start workers that are stopped, failed or quarantined", "", phase.Ready},
	}
	out := make([]*cobra.Command, len(verbs))
	for i, v := range verbs {
		out[i] = v.command(c)
	}
	return out
}

func (v workerVerb) command(c *console) *cobra.Command {
	var f adminFlags
	var wait bool
	cmd := &cobra.Command{
		Use:     v.name + " POOL|POOL/NAME|NAME...",
		Short:   v.short,
		Long:    v.long,
		GroupID: groupOperate,
		Args:    usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := f.client(c)
			if err != nil {
				return err
			}
			return v.run(cmd.Context(), c, a, args, wait, f.json)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until they are "+string(v.goal))
	return cmd
}

func (v workerVerb) run(ctx context.Context, c *console, a *client, args []string, wait, asJSON bool) error {
	var asked []workerAnswer
	for _, arg := range args { // all names are understood before anything is done
		_, workers, err := a.resolve(ctx, arg)
		if err != nil {
			return err
		}
		asked = append(asked, workers...)
	}
	answers := []json.RawMessage{}
	for _, w := range asked {
		var answer struct {
			Worker json.RawMessage `json:"worker"`
		}
		if err := a.ask(ctx, http.MethodPost, "/api/workers"+escaped(w.Pool, w.Name, v.name), nil, &answer); err != nil {
			return err
		}
		var now workerAnswer
		if err := json.Unmarshal(answer.Worker, &now); err != nil {
			return fmt.Errorf("%s: the worker in its answer: %w", a.where, err)
		}
		answers = append(answers, answer.Worker)
		if !asJSON {
			fmt.Fprintf(c.out, "%s: %s\n", w.ID, printable(now.describe()))
		}
	}
	if wait {
		if err := v.wait(ctx, c, a, asked, asJSON); err != nil {
			return err
		}
	}
	if asJSON {
		return c.printJSON(map[string]any{"schema": 1, "workers": answers})
	}
	return nil
}

// wait returns once all workers asked are as v wants them, and fails when one
// cannot come to be so any more.
func (v workerVerb) wait(ctx context.Context, c *console, a *client, asked []workerAnswer, quiet bool) error {
	last := map[string]phase.Phase{}
	for _, w := range asked {
		last[w.ID] = ""
	}
	return poll(ctx, func() (bool, error) {
		all, err := a.workers(ctx)
		if err != nil {
			return false, err
		}
		there := 0
		for _, w := range all.Workers {
			before, isAsked := last[w.ID]
			if !isAsked {
				continue
			}
			if w.State != before && before != "" && !quiet {
				fmt.Fprintf(c.out, "%s: %s\n", w.ID, printable(w.describe()))
			}
			last[w.ID] = w.State
			switch w.State {
			case v.goal:
				there++
			case phase.Failed, phase.Quarantined:
				if before != "" && before != w.State {
					return false, fmt.Errorf("%s is %s: %s", w.ID, w.State, printable(orDash(w.LastError)))
				}
			}
		}
		return there == len(last), nil
	})
}

// poll calls done until it says so, fails, or ctx ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

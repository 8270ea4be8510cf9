package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"roundhouse/configs/workerid"
	"roundhouse/supervisor"
	"roundhouse/supervisor/core"
)

// rotation is one run of the rotate command.
type rotation struct {
	*console
	*client
	ask     supervisor.RotateCommand
	target  selection
	noWait  bool
	asJSON  bool
	printed string // the last line of progress
}

// rotateCommand restarts the workers of a pool, one after the other.
func rotateCommand(c *console) *cobra.Command {
	var f adminFlags
	var status bool
	r := &rotation{console: c}
	cmd := &cobra.Command{
		Use:   "rotate POOL|POOL/NAME|NAME",
		Short: "Restart workers one after the other, losing no request",
		Long: `Restart workers one after the other: each is drained, stopped, started, warmed
up and used again before the next one's turn. The command waits and shows how
it goes; leaving it with Ctrl-C leaves the rotation running.

A rotation halts at the first failure, keeps serving with the others, and goes
on with --continue or ends with --abort.`,
		GroupID: groupOperate,
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !status {
				return usageError("rotate takes a pool or a worker")
			}
			a, err := f.client(c)
			if err != nil {
				return err
			}
			r.client, r.asJSON = a, f.json
			if status {
				return r.status(cmd.Context(), args)
			}
			if r.target, _, err = a.resolve(cmd.Context(), args[0]); err != nil {
				return err
			}
			return r.run(cmd.Context())
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&r.noWait, "no-wait", false, "return at once")
	cmd.Flags().BoolVar(&r.ask.DryRun, "dry-run", false, "say what would happen, and why not now")
	cmd.Flags().BoolVar(&r.ask.Continue, "continue", false, "go on with a halted rotation")
	cmd.Flags().BoolVar(&r.ask.Abort, "abort", false, "end a running or halted rotation")
	cmd.Flags().BoolVar(&status, "status", false, "show the last rotation of each pool, or of this one")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "continue", "abort", "status")
	return cmd
}

func (r *rotation) run(ctx context.Context) error {
	url := "/api/pools" + escaped(r.target.pool, "rotate")
	if r.target.name != "" {
		url = "/api/workers" + escaped(r.target.pool, r.target.name, "rotate")
	}
	var answer struct {
		Rotation rotationAnswer `json:"rotation"`
		Turns    []core.Turn    `json:"turns"`
	}
	var raw json.RawMessage
	if err := r.client.ask(ctx, http.MethodPost, url, r.ask, &raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("%s: its answer to rotate: %w", r.where, err)
	}
	switch {
	case r.ask.DryRun && r.asJSON, r.noWait && r.asJSON, r.ask.Abort && r.asJSON:
		return r.relayed(raw)
	case r.ask.DryRun:
		return r.printTurns(answer.Turns)
	case r.ask.Abort:
		fmt.Fprintf(r.out, "rotation %d of %s ended: %s\n", answer.Rotation.ID, r.target.pool, printable(orDash(answer.Rotation.Reason)))
		return nil
	case r.noWait:
		fmt.Fprintf(r.out, "rotation %d of %s begun; `roundhouse rotate --status %s` tells how it goes\n", answer.Rotation.ID, r.target.pool, r.target.pool)
		return nil
	}
	return r.follow(ctx, answer.Rotation.ID)
}

func (r *rotation) printTurns(turns []core.Turn) error {
	t := newTable(r.out)
	t.row("WORKER", "TURN")
	for _, turn := range turns {
		switch {
		case turn.Skipped:
			t.row(turn.Worker, "none: it does not run")
		case turn.Obstacle != "":
			t.row(turn.Worker, "not now: "+turn.Obstacle)
		default:
			t.row(turn.Worker, "now")
		}
	}
	return t.flush()
}

// patience is how long a rotation is followed while the admin API is away:
// the supervisor may be starting anew.
const patience = 60 * time.Second

// follow shows a rotation's progress until it ends.
func (r *rotation) follow(ctx context.Context, id uint64) error {
	var away time.Time
	return poll(ctx, func() (bool, error) {
		now, err := r.rotationOf(ctx, r.target.pool)
		var coded *codedError
		if errors.As(err, &coded) && coded.code == exitUnreachable {
			if away.IsZero() {
				away = time.Now()
			}
			if time.Since(away) < patience {
				return false, nil
			}
		}
		if err != nil {
			return false, err
		}
		away = time.Time{}
		if now.ID != id {
			return false, fmt.Errorf("rotation %d of %s has given way to rotation %d (%s)", id, r.target.pool, now.ID, now.Cause)
		}
		if now.State == "running" {
			return false, r.progress(ctx, now)
		}
		return true, r.finish(now)
	})
}

// rotationOf returns the last rotation of a pool.
func (r *rotation) rotationOf(ctx context.Context, pool string) (rotationAnswer, error) {
	list, _, err := r.rotations(ctx)
	if err != nil {
		return rotationAnswer{}, err
	}
	for _, one := range list {
		if one.Pool == pool {
			return one, nil
		}
	}
	return rotationAnswer{}, fmt.Errorf("the admin API knows no rotation of %s any more", pool)
}

func (a *client) rotations(ctx context.Context) ([]rotationAnswer, json.RawMessage, error) {
	var answer struct {
		Rotations json.RawMessage `json:"rotations"`
	}
	if err := a.ask(ctx, http.MethodGet, "/api/rotations", nil, &answer); err != nil {
		return nil, nil, err
	}
	var list []rotationAnswer
	if err := json.Unmarshal(answer.Rotations, &list); err != nil {
		return nil, nil, fmt.Errorf("%s: the rotations in its answer: %w", a.where, err)
	}
	return list, answer.Rotations, nil
}

// progress prints a line where something has changed.
func (r *rotation) progress(ctx context.Context, now rotationAnswer) error {
	if r.asJSON {
		return nil
	}
	doing := ""
	switch {
	case now.Current != nil:
		all, err := r.workers(ctx)
		if err != nil {
			return nil // the next look tells
		}
		for _, w := range all.Workers {
			if w.ID == workerid.Of(r.target.pool, *now.Current) {
				doing = w.ID + ": " + w.describe()
			}
		}
	case now.Canary != nil:
		doing = *now.Canary + " is being judged against the others"
	case now.Waiting != nil:
		doing = "waiting: " + *now.Waiting
	}
	if doing == "" {
		return nil // between two turns
	}
	if line := fmt.Sprintf("[%d/%d] %s", len(now.Done), now.turns(), doing); line != r.printed {
		fmt.Fprintln(r.out, printable(line))
		r.printed = line
	}
	return nil
}

// turns is how many turns a rotation has in all.
func (a rotationAnswer) turns() int {
	n := len(a.Done) + len(a.Queue)
	if a.Current != nil {
		n++
	}
	return n
}

// finish prints how a rotation ended; anything but done is a failure.
func (r *rotation) finish(now rotationAnswer) error {
	if r.asJSON {
		if err := r.printJSON(map[string]any{"schema": 1, "rotation": now}); err != nil {
			return err
		}
		if now.State == "done" {
			return nil
		}
		return &codedError{exitFailed, errSaid}
	}
	took := ""
	if now.Began != nil && now.Ended != nil {
		took = " in " + now.Ended.Sub(*now.Began).Round(100*time.Millisecond).String()
	}
	if now.State == "done" {
		fmt.Fprintf(r.out, "rotation %d of %s done: %s%s\n", now.ID, now.Pool, count(len(now.Done), "worker"), took)
		return nil
	}
	left := ""
	if len(now.Queue) > 0 {
		left = fmt.Sprintf("; %s had no turn. roundhouse rotate %s --continue or --abort", strings.Join(now.Queue, ", "), now.Pool)
	}
	return fmt.Errorf("rotation %d of %s %s after %s: %s%s", now.ID, now.Pool, strings.ReplaceAll(now.State, "_", " "),
		count(len(now.Done), "worker"), printable(orDash(now.Reason)), left)
}

// status prints the last rotations.
func (r *rotation) status(ctx context.Context, args []string) error {
	list, raw, err := r.rotations(ctx)
	if err != nil {
		return err
	}
	pool := ""
	if len(args) > 0 {
		t, _, err := r.resolve(ctx, args[0])
		if err != nil {
			return err
		}
		pool = t.pool
	}
	if r.asJSON {
		return r.printJSON(map[string]any{"schema": 1, "rotations": raw})
	}
	t := newTable(r.out)
	t.row("POOL", "ROTATION", "STATE", "TURNS", "NOW", "CAUSE", "WHY")
	for _, one := range list {
		if pool != "" && one.Pool != pool {
			continue
		}
		why := one.Reason
		if why == nil {
			why = one.Waiting
		}
		t.row(one.Pool, one.ID, strings.ReplaceAll(one.State, "_", " "), fmt.Sprintf("%d/%d", len(one.Done), one.turns()),
			orDash(one.Current), one.Cause, orDash(why))
	}
	return t.flush()
}

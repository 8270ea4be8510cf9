package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"roundhouse/supervisor"
)

// scheduleCommand shows the schedules and turns them off and on.
func scheduleCommand(c *console) *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use:     "schedule",
		Short:   "Show when the pools rotate; turn schedules off and on",
		GroupID: groupOperate,
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := f.client(c)
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := a.ask(cmd.Context(), http.MethodGet, "/api/schedule", nil, &raw); err != nil {
				return err
			}
			return c.printSchedules(a, raw, f.json)
		},
	}
	f.add(cmd)
	cmd.AddCommand(scheduleSwitch(c, true), scheduleSwitch(c, false))
	return cmd
}

// scheduleSwitch is `schedule on` or `schedule off`.
func scheduleSwitch(c *console, on bool) *cobra.Command {
	var f adminFlags
	var until string
	cmd := &cobra.Command{
		Use:   "off [POOL]",
		Short: "Turn the schedule of a pool, or of all, off",
		Long: `Turn the schedule of a pool, or of all, off. --until takes a length of time
("8h"), a time of day ("06:00", the next one), or a date and time
("2026-12-24 18:00"), in this machine's time zone.`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ask := supervisor.ScheduleCommand{Off: !on}
			if len(args) > 0 {
				ask.Pool = args[0]
			}
			if until != "" {
				t, err := parseUntil(until, time.Now())
				if err != nil {
					return err
				}
				ask.Until = &t
			}
			a, err := f.client(c)
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := a.ask(cmd.Context(), http.MethodPost, "/api/schedule", ask, &raw); err != nil {
				return err
			}
			return c.printSchedules(a, raw, f.json)
		},
	}
	if on {
		cmd.Use, cmd.Short, cmd.Long = "on [POOL]", "Turn the schedule of a pool, or of all, on", ""
	} else {
		cmd.Flags().StringVar(&until, "until", "", "turn it on again then")
	}
	f.add(cmd)
	return cmd
}

// parseUntil reads when something ends.
func parseUntil(s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(d).Truncate(time.Second), nil
	}
	if t, err := time.ParseInLocation("15:04", s, now.Location()); err == nil {
		year, month, day := now.Date()
		at := time.Date(year, month, day, t.Hour(), t.Minute(), 0, 0, now.Location())
		if !at.After(now) {
			at = time.Date(year, month, day+1, t.Hour(), t.Minute(), 0, 0, now.Location())
		}
		return at, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			if !t.After(now) {
				return time.Time{}, usageError("--until %s is in the past", s)
			}
			return t, nil
		}
	}
	return time.Time{}, usageError(`--until %q: write "8h", "06:00" or "2026-12-24 18:00"`, s)
}

func (c *console) printSchedules(a *client, raw json.RawMessage, asJSON bool) error {
	if asJSON {
		return c.relayed(raw)
	}
	var answer struct {
		Schedules []supervisor.ScheduleShown `json:"schedules"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("%s: the schedules in its answer: %w", a.where, err)
	}
	t := newTable(c.out)
	t.row("POOL", "SCHEDULE", "TIME ZONE", "NEXT", "LAST", "STATE")
	for _, s := range answer.Schedules {
		state := "on"
		switch {
		case s.Schedule == nil:
			state = "by hand"
		case s.Off && s.OffUntil != nil:
			state = "off until " + s.OffUntil.UTC().Format(stamp)
		case s.Off:
			state = "off"
		}
		t.row(s.Pool, orDash(s.Schedule), s.Timezone, when(s.Next), when(s.Last), state)
	}
	return t.flush()
}

// stamp is how a moment is printed. It is UTC everywhere, so that what two
// operators in two places read is the same.
const stamp = "2006-01-02 15:04:05 UTC"

func when(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(stamp)
}

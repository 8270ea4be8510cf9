package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"roundhouse/configs"
	"roundhouse/plugins"
)

// pluginsCommand shows the plugins of a running roundhouse, or tries those of a
// configuration.
func pluginsCommand(c *console) *cobra.Command {
	var f adminFlags
	var try bool
	cmd := &cobra.Command{
		Use:   "plugins",
		Short: "Show the plugins, or try those of a configuration",
		Long: `Show the plugins of a running roundhouse: their state, version, calls, how long these
took and how many failed. With --try -c FILE, each plugin of the file is checked against its
sha256, started, asked what it is, and ended; those of a running roundhouse are not touched.`,
		GroupID: groupLook,
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if try {
				return c.tryPlugins(cmd.Context(), f)
			}
			a, err := f.client(c)
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := a.ask(cmd.Context(), http.MethodGet, "/api/plugins", nil, &raw); err != nil {
				return err
			}
			if f.json {
				return c.relayed(raw)
			}
			var answer struct{ Plugins []plugins.Stats }
			if err := json.Unmarshal(raw, &answer); err != nil {
				return fmt.Errorf("%s: the plugins in its answer: %w", a.where, err)
			}
			return c.printRunning(answer.Plugins)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&try, "try", false, "start each plugin of the file once, and say how it went")
	return cmd
}

// printRunning is the table of plugins at work.
func (c *console) printRunning(all []plugins.Stats) error {
	if len(all) == 0 {
		fmt.Fprintln(c.out, "no plugin is configured")
		return nil
	}
	t := newTable(c.out)
	t.row("PLUGIN", "KIND", "STATE", "VERSION", "STARTS", "BREAKER", "CALLS", "FAILED", "P50", "P99", "LAST ERROR")
	for _, s := range all {
		last := s.LastError
		if last == "" {
			last = "-"
		}
		t.row(s.Name, s.Kind, s.State, s.Version, s.Starts, s.Breaker, s.Calls, s.Failures, s.P50.Round(time.Microsecond), s.P99.Round(time.Microsecond), last)
	}
	return t.flush()
}

// tryPlugins starts each plugin of a file once.
func (c *console) tryPlugins(ctx context.Context, f adminFlags) error {
	if f.file == "" {
		return usageError("--try needs -c FILE: which configuration?")
	}
	cfg, err := c.load(f.file)
	if err != nil {
		return err
	}
	stats := make([]plugins.Stats, len(cfg.Plugins))
	failed := false
	for i, p := range cfg.Plugins {
		stats[i] = tryPlugin(ctx, p)
		failed = failed || stats[i].State != "running"
	}
	if err := c.printPlugins(stats, f.json); err != nil {
		return err
	}
	if failed {
		return &codedError{exitFailed, errSaid}
	}
	return nil
}

// tryPlugin runs one plugin until it has shaken hands.
func tryPlugin(ctx context.Context, p configs.Plugin) plugins.Stats {
	ctx, cancel := context.WithTimeout(ctx, 11*time.Second)
	defer cancel()
	running := plugins.Start(plugins.Spec{Name: p.Name, Kind: p.Kind, Path: p.Path, SHA256: p.SHA256, Open: p.OnFailure == "open", User: p.User},
		plugins.Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	defer running.Close()
	for {
		once, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		err := running.Ready(once)
		cancel()
		if s := running.Stats(); err == nil || s.State == "failed" || ctx.Err() != nil {
			return s
		}
	}
}

func (c *console) printPlugins(stats []plugins.Stats, asJSON bool) error {
	if asJSON {
		return c.printJSON(map[string]any{"schema": 1, "plugins": stats})
	}
	if len(stats) == 0 {
		fmt.Fprintln(c.out, "the configuration has no plugins")
		return nil
	}
	t := newTable(c.out)
	t.row("PLUGIN", "KIND", "STARTS", "VERSION", "PROTOCOL", "WHY")
	for _, s := range stats {
		if s.State == "running" {
			t.row(s.Name, s.Kind, "yes", s.Version, s.Protocol, "-")
		} else {
			t.row(s.Name, s.Kind, "no", "-", "-", s.LastError)
		}
	}
	return t.flush()
}

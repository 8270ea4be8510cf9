package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"roundhouse/configs"
	"roundhouse/plugins"
)

// pluginsCommand starts each plugin of a configuration once and says how it
// went.
func pluginsCommand(c *console) *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plugins -c FILE",
		Short: "Try the plugins of a configuration",
		Long: `Try the plugins of a configuration: each is checked against its sha256, started,
asked what it is, and ended. Those of a running roundhouse are not touched.`,
		GroupID: groupConfig,
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.load(file)
			if err != nil {
				return err
			}
			stats := make([]plugins.Stats, len(cfg.Plugins))
			failed := false
			for i, p := range cfg.Plugins {
				stats[i] = tryPlugin(cmd.Context(), p)
				failed = failed || stats[i].State != "running"
			}
			if err := c.printPlugins(stats, asJSON); err != nil {
				return err
			}
			if failed {
				return &codedError{exitFailed, errSaid}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "the configuration file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was found as JSON")
	if err := cmd.MarkFlagRequired("config"); err != nil {
		panic("BUG: " + err.Error())
	}
	return cmd
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
